import type { EntryCursor, Entry, EntryPage, PageQuery, Space } from './store.ts';

interface Steps {
  /** What is waited for between two steps, so that others get their turn. */
  readonly between: () => Promise<unknown>;
  /** Letters of values after which it is enough. */
  readonly enough?: number;
}

/** As many entries as were asked for, or all there are, in as many steps as that takes: a store ends a page of long ones sooner. */
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
