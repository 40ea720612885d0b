import { useQueries } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import type { MemoryClient } from '../../../contract/window.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { NO_PAGES, type Pages, type Row, rowsOf, visiblePages, withResult } from './pages.ts';

const RESULTS = 50;
const PAGE = 200;
/** Number of facts on the first page. Only slightly more than the window can show, so that the list appears quickly. */
const FIRST_PAGE = 40;

export type Sort = 'updated' | 'expires';

interface Query {
  readonly filter: FactsFilter;
  readonly sort: Sort;
  /** Words to search for; empty to list all facts. */
  readonly words: string;
}

/** Returns the facts that match the filter. If there are search words, returns only the search results (R-SEEK-01). */
export function useRows({ filter, sort, words }: Query) {
  const listing = words === '';
  const { pages, failure, onVisibleRows } = usePages(filter, sort, listing);
  const found = useSearch(words, filter, !listing);
  const rows = useMemo<readonly Row[]>(
    () =>
      listing
        ? rowsOf(pages)
        : (found.data?.hits.map(({ key, expires_at, why, snippet }) => ({ key, expires_at, why, snippet })) ?? []),
    [listing, pages, found.data],
  );
  const hasMore = listing && pages.at(-1)?.from === undefined;
  return {
    rows,
    onVisibleRows,
    hasMore,
    partial: !listing && found.data?.partial === true,
    pending: listing ? hasMore && rows.length === 0 : found.isPending,
    failure: (listing ? failure : found.error) ?? undefined,
  };
}

/**
 * Searches by words, which is fast, and also by meaning unless that is off. Returns the results by words until those by meaning
 * arrive.
 */
function useSearch(query: string, filter: FactsFilter, enabled: boolean) {
  const input = { query, limit: RESULTS, ...filter };
  const byWords = useOperation('search', { ...input, mode: 'words' }, enabled);
  const { data: status } = useOperation('status', {});
  const byMeaning = status !== undefined && status.meaning.at !== 'off';
  const refined = useOperation('search', { ...input, mode: 'auto' }, enabled && byMeaning);
  return refined.data && !refined.isPlaceholderData ? refined : byWords;
}

const pageQuery = (call: MemoryClient, subject: string, filter: FactsFilter, sort: Sort, start: string) => ({
  queryKey: [subject, 'list', filter, sort, start],
  queryFn: () =>
    call('list', { ...filter, sort, limit: start === '' ? FIRST_PAGE : PAGE, ...(start !== '' && { cursor: start }) }),
});

/** The query for the first page of facts. Sent first, so that slower queries do not delay the list. */
export const newestFacts = (call: MemoryClient, subject: string) => pageQuery(call, subject, {}, 'updated', '');

/**
 * Reads a list page by page. After a change, only the first page and the visible pages are read again, because reading a long list
 * takes seconds. Other pages are read when they become visible (R-WIN-41).
 */
function usePages(filter: FactsFilter, sort: Sort, enabled: boolean) {
  const { call, subject } = useMemory();
  const list = JSON.stringify([subject, filter, sort]);
  const [cached, setCached] = useState({ list, pages: NO_PAGES });
  const pages = cached.list === list ? cached.pages : NO_PAGES;
  const [{ first, last }, setVisible] = useState<Range>({ first: 0, last: 0 });
  const starts = visiblePages(pages, first, last).map((at) => ({ at, start: pages[at]?.start ?? '' }));
  const results = useQueries({
    queries: starts.map(({ start }) => ({ ...pageQuery(call, subject, filter, sort, start), enabled })),
  });
  // `results[0]` belongs to the first page. If locking the memory has removed this result, hide all pages.
  let present: Pages = results[0]?.data === undefined ? NO_PAGES : pages;
  for (const [index, { at, start }] of starts.entries()) {
    const result = results[index]?.data;
    // Skip an outdated result: an earlier page may have moved the start of this page. The next render then requests the page again.
    if (result && present[at]?.start === start && present[at].from !== result) present = withResult(present, at, result);
  }
  if (present !== pages) setCached({ list, pages: present });
  const onVisibleRows = useCallback(
    (from: number, to: number) =>
      // Return the same state if the same pages are visible, so that scrolling does not render the component again.
      setVisible((before) => (hasSamePages(present, before, { first: from, last: to }) ? before : { first: from, last: to })),
    [present],
  );
  return { pages: present, failure: results.find(({ error }) => error !== null)?.error, onVisibleRows };
}

interface Range {
  readonly first: number;
  readonly last: number;
}

const hasSamePages = (pages: Pages, one: Range, other: Range): boolean =>
  visiblePages(pages, one.first, one.last).join() === visiblePages(pages, other.first, other.last).join();
