import type { EntryCursor, Entry, EntryPage, PageQuery, Space } from './store.ts';

interface Steps {
  /** Called and awaited between two steps, so that other requests can run. */
  readonly between: () => Promise<unknown>;
  /** The page ends when its values have this many characters in total. Unlimited by default. */
  readonly enough?: number;
}

/** Reads a full page, in several steps if the entries are long. A single step would delay other requests. */
export async function collectPage(space: Space, query: PageQuery, { between, enough = Infinity }: Steps): Promise<EntryPage> {
  const entries: Entry[] = [];
  const rows: number[] = [];
  let letters = 0;
  let after: EntryCursor | undefined = query.after;
  for (;;) {
    const page = await space.page({ ...query, limit: query.limit - entries.length, ...(after && { after }) });
    entries.push(...page.entries);
    rows.push(...page.rows);
    for (const { value } of page.entries) letters += value.length;
    after = page.next;
    if (!after) return { entries, rows };
    if (entries.length >= query.limit || letters >= enough) return { entries, rows, next: after };
    await between();
  }
}
