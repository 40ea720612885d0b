import { useQueries } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import type { MemoryClient } from '../../../contract/window.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { type Pages, pagesInSight, type Row, rowsOf, UNREAD, withAnswer } from './pages.ts';

const HITS = 50;
const PAGE = 200;
/** What a window shows at first, and little more: so much sooner it is there. The page behind it is asked for by then. */
const FIRST_PAGE = 40;

export type Sort = 'updated' | 'expires';

interface Wanted {
  readonly filter: FactsFilter;
  readonly sort: Sort;
  /** Words to look for; nothing lists. */
  readonly words: string;
}

/** The facts that are listed, or found among those that would be (R-SEEK-01). */
export function useRows({ filter, sort, words }: Wanted) {
  const listing = words === '';
  const { pages, failure, see } = usePages(filter, sort, listing);
  const found = useAsked('search', { query: words, limit: HITS, ...filter }, !listing);
  const rows = useMemo<readonly Row[]>(
    () =>
      listing
        ? rowsOf(pages)
        : (found.data?.hits.map(({ key, expires_at, why, snippet }) => ({ key, expires_at, why, snippet })) ?? []),
    [listing, pages, found.data],
  );
  /** Whether there are more than are here. */
  const open = listing && pages.at(-1)?.from === undefined;
  return {
    rows,
    see,
    open,
    partial: !listing && found.data?.partial === true,
    pending: listing ? open && rows.length === 0 : found.isPending,
    failure: (listing ? failure : found.error) ?? undefined,
  };
}

/** One page of a list, by the place behind which it begins. */
const pageOf = (ask: MemoryClient, subject: string, filter: FactsFilter, sort: Sort, start: string) => ({
  queryKey: [subject, 'list', filter, sort, start],
  queryFn: () =>
    ask('list', { ...filter, sort, limit: start === '' ? FIRST_PAGE : PAGE, ...(start !== '' && { cursor: start }) }),
});

/** What the window begins with, asked before anything else is made or asked: an overview of a large memory takes longer than its newest facts. */
export const newestOf = (ask: MemoryClient, subject: string) => pageOf(ask, subject, {}, 'updated', '');

/**
 * A list, page by page. When something changes, only the first page and those in sight are read again: a long list would take
 * seconds as a whole. The others are when they come in sight.
 */
function usePages(filter: FactsFilter, sort: Sort, enabled: boolean) {
  const { ask, subject } = useMemory();
  const list = JSON.stringify([subject, filter, sort]);
  const [kept, keep] = useState({ list, pages: UNREAD });
  const pages = kept.list === list ? kept.pages : UNREAD;
  const [{ first, last }, setSight] = useState<Sight>({ first: 0, last: 0 });
  const starts = pagesInSight(pages, first, last).map((at) => ({ at, start: pages[at]?.start ?? '' }));
  const read = useQueries({
    queries: starts.map(({ start }) => ({ ...pageOf(ask, subject, filter, sort, start), enabled })),
  });
  // The first page is among them at all times. Without an answer, what was read is taken back: the memory is locked.
  let present: Pages = read[0]?.data === undefined ? UNREAD : pages;
  for (const [index, { at, start }] of starts.entries()) {
    const answer = read[index]?.data;
    // A page before it may have moved where it begins; then it is read from there.
    if (answer && present[at]?.start === start && present[at].from !== answer) present = withAnswer(present, at, answer);
  }
  if (present !== pages) keep({ list, pages: present });
  const see = useCallback(
    (from: number, to: number) =>
      // Most rows that come in sight stand on a page that is in sight already.
      setSight((seen) => (isSame(present, seen, { first: from, last: to }) ? seen : { first: from, last: to })),
    [present],
  );
  return { pages: present, failure: read.find(({ error }) => error !== null)?.error, see };
}

interface Sight {
  readonly first: number;
  readonly last: number;
}

const isSame = (pages: Pages, one: Sight, other: Sight): boolean =>
  pagesInSight(pages, one.first, one.last).join() === pagesInSight(pages, other.first, other.last).join();
