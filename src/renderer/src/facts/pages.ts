import type { OperationOutput } from '../../../contract/operations.ts';

type ListResult = OperationOutput<'list'>;

export interface Row {
  readonly key: string;
  readonly expires_at: string;
  /** Explains why the fact matched the search, such as `"deploy" in key`. Absent if the row is not a search result. */
  readonly why?: string;
  readonly snippet?: string;
}

interface Page {
  /** The cursor that requests this page; empty for the first page. */
  readonly start: string;
  readonly rows: readonly Row[];
  /** The response that contained the rows. Undefined until the page has loaded. */
  readonly from: ListResult | undefined;
}

/** The pages of a list. The last page is not loaded yet, unless the list is complete. */
export type Pages = readonly Page[];

export const NO_PAGES: Pages = [{ start: '', rows: [], from: undefined }];

/** Number of rows above and below the visible rows. Pages with these rows are kept up to date too. */
const MARGIN = 20;

export const rowsOf = (pages: Pages): readonly Row[] => pages.flatMap(({ rows }) => rows);

/** Returns the indexes of the pages to keep up to date: pages near the visible rows, and the first page, where new facts appear. */
export function visiblePages(pages: Pages, first: number, last: number): number[] {
  let end = 0;
  return pages.flatMap(({ rows }, at) => {
    const begin = end;
    end += rows.length;
    return at === 0 || (begin <= last + MARGIN && end >= first - MARGIN) ? [at] : [];
  });
}

/**
 * Replaces one page with a newly loaded result. The next page starts where the result ends, so that no fact is missed between two
 * pages. Rows that no longer fit on the page move to the next page. A key never appears on two pages: the page that was loaded last
 * keeps the key.
 */
export function withResult(pages: Pages, at: number, result: ListResult): Pages {
  const { facts, next_cursor: next } = result;
  const here = new Set(facts.map(({ key }) => key));
  const withoutThem = (page: Page): Page =>
    page.rows.some(({ key }) => here.has(key)) ? { ...page, rows: page.rows.filter(({ key }) => !here.has(key)) } : page;
  const before = pages.slice(0, at).map(withoutThem);
  const page = { start: pages[at]?.start ?? '', rows: facts, from: result };
  if (next === undefined) return [...before, page];
  const [following, ...rest] = pages.slice(at + 1).map(withoutThem);
  const moved = rowsBeyond(pages, at, facts).filter(({ key }) => !here.has(key));
  return [...before, page, { start: next, rows: [...moved, ...(following?.rows ?? [])], from: following?.from }, ...rest];
}

/** Returns those old rows of a page that follow the last row of the new result. */
function rowsBeyond(pages: Pages, at: number, facts: readonly Row[]): readonly Row[] {
  const last = facts.at(-1)?.key;
  const isLast = ({ key }: Row): boolean => key === last;
  const old = pages[at]?.rows ?? [];
  const end = old.findIndex(isLast);
  // If the result's last row was on a later page, the result spans this whole page. Rows missing from the result were deleted.
  if (last === undefined || (end === -1 && rowsOf(pages.slice(at + 1)).some(isLast))) return [];
  return old.slice(end + 1);
}
