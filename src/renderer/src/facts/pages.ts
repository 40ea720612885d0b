import type { OperationOutput } from '../../../contract/operations.ts';

type ListResult = OperationOutput<'list'>;

export interface Row {
  readonly key: string;
  readonly expires_at: string;
  /** For a search result: which words matched, and where. */
  readonly why?: string;
  readonly snippet?: string;
}

interface Page {
  /** The cursor after which the page begins; empty for the first page. */
  readonly start: string;
  readonly rows: readonly Row[];
  /** The result that the rows come from; undefined until the page has loaded. */
  readonly from: ListResult | undefined;
}

/** The pages of a list. An unloaded page follows the last loaded page, unless the list ends there. */
export type Pages = readonly Page[];

export const NO_PAGES: Pages = [{ start: '', rows: [], from: undefined }];

/** Pages within this many rows of the visible ones are kept up to date. */
const MARGIN = 20;

export const rowsOf = (pages: Pages): readonly Row[] => pages.flatMap(({ rows }) => rows);

/** The pages to keep up to date. They include the first page, because new facts appear there. */
export function visiblePages(pages: Pages, first: number, last: number): number[] {
  let end = 0;
  return pages.flatMap(({ rows }, at) => {
    const begin = end;
    end += rows.length;
    return at === 0 || (begin <= last + MARGIN && end >= first - MARGIN) ? [at] : [];
  });
}

/**
 * Replaces one page with a new result. The next page starts at the end of that result, so pages read in order leave no gap. Rows
 * that no longer fit on the page move to the next one. A key that appears twice stays on the page that was read last.
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

/** The old rows of a page after the last row of its new result. */
function rowsBeyond(pages: Pages, at: number, facts: readonly Row[]): readonly Row[] {
  const last = facts.at(-1)?.key;
  const isLast = ({ key }: Row): boolean => key === last;
  const old = pages[at]?.rows ?? [];
  const end = old.findIndex(isLast);
  // The new result reaches into the next page, so any missing row was deleted.
  if (last === undefined || (end === -1 && rowsOf(pages.slice(at + 1)).some(isLast))) return [];
  return old.slice(end + 1);
}
