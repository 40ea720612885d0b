import { statSync } from 'node:fs';
import type { Caller } from '../src/core/access/caller.ts';
import { noteOf } from '../src/core/operations/activity.ts';
import { aFact, ours } from './memory.ts';
import { report, type Result } from './report.ts';

const FACTS = 20_000;

/** Measures how much the file grows for each fact of 200 bytes without history, indexes included. */
export async function size(): Promise<Result[]> {
  return [
    await perFact('size of a 200-byte fact on disk', false, 430),
    await perFact('size of a 200-byte fact on disk, with its activity record', true, 560),
  ];
}

async function perFact(what: string, recorded: boolean, atMost: number): Promise<Result> {
  await using mine = await ours(0);
  const { author } = aFact(0);
  const caller: Caller = {
    subject: 'me',
    client: author.client,
    transport: author.origin,
    token: author.token,
    scopes: new Set(),
  };
  for (let from = 0; from < FACTS; from += 250) {
    const drafts = Array.from({ length: 250 }, (_, more) => aFact(from + more));
    await Promise.all(
      drafts.map((draft) => mine.facts.put(draft, recorded ? noteOf(caller, 'remember', { key: draft.key }) : undefined)),
    );
  }
  await mine.store.sweep(1);
  // A forget empties the write-ahead log into the file.
  await mine.store.forget('nobody', { kinds: ['fact'] });
  const bytes = statSync(mine.file).size;
  return {
    what,
    figure: bytes / FACTS,
    unit: 'bytes',
    bar: { atMost },
    from: `${FACTS} facts in ${(bytes / 1024 / 1024).toFixed(1)} MiB`,
  };
}

if (import.meta.main) process.exitCode = report(await size()) ? 0 : 1;
