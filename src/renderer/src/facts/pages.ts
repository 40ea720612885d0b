import type { OperationOutput } from '../../../contract/operations.ts';

type Answer = OperationOutput<'list'>;

export interface Row {
  readonly key: string;
  readonly expires_at: string;
  /** Of a hit: why it is one. */
  readonly why?: string;
  readonly snippet?: string;
}

/** A page of a list, as it was read last. */
interface Page {
  /** The place in the list behind which it begins; the first begins behind nothing. */
  readonly start: string;
  readonly rows: readonly Row[];
  /** Undefined until it is read for the first time. */
  readonly from: Answer | undefined;
}

/** A list as far as it was reached. Behind the last page that was read stands one that was not, unless the list ends there. */
export type Pages = readonly Page[];

export const UNREAD: Pages = [{ start: '', rows: [], from: undefined }];

/** So near to what is in sight, pages are kept up to date. */
const AHEAD = 20;

export const rowsOf = (pages: Pages): readonly Row[] => pages.flatMap(({ rows }) => rows);

/** Pages to be looked at while these rows are in sight. The first is one of them: what is new stands there. */
export function pagesInSight(pages: Pages, first: number, last: number): number[] {
  let end = 0;
  return pages.flatMap(({ rows }, at) => {
    const begin = end;
    end += rows.length;
    return at === 0 || (begin <= last + AHEAD && end >= first - AHEAD) ? [at] : [];
  });
}

/**
 * The list after one of its pages was read again. The next one begins where it ends now, so that pages that are read one after the
 * other leave nothing out. A row stands where it was read last, and what the page has no room for any more goes over to the next.
 */
export function withAnswer(pages: Pages, at: number, answer: Answer): Pages {
  const { facts, next_cursor: next } = answer;
  const here = new Set(facts.map(({ key }) => key));
  const withoutThem = (page: Page): Page =>
    page.rows.some(({ key }) => here.has(key)) ? { ...page, rows: page.rows.filter(({ key }) => !here.has(key)) } : page;
  const before = pages.slice(0, at).map(withoutThem);
  const page = { start: pages[at]?.start ?? '', rows: facts, from: answer };
  if (next === undefined) return [...before, page];
  const [following, ...rest] = pages.slice(at + 1).map(withoutThem);
  const over = rowsBeyond(pages, at, facts).filter(({ key }) => !here.has(key));
  return [...before, page, { start: next, rows: [...over, ...(following?.rows ?? [])], from: following?.from }, ...rest];
}

/** What a page showed behind the row that is its last now. */
function rowsBeyond(pages: Pages, at: number, facts: readonly Row[]): readonly Row[] {
  const last = facts.at(-1)?.key;
  const isLast = ({ key }: Row): boolean => key === last;
  const shown = pages[at]?.rows ?? [];
  const end = shown.findIndex(isLast);
  // It reaches further than before: what it showed and is not there any more is gone.
  if (last === undefined || (end === -1 && rowsOf(pages.slice(at + 1)).some(isLast))) return [];
  return shown.slice(end + 1);
}
