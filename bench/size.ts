import { statSync } from 'node:fs';
import { ours } from './memory.ts';
import type { Result } from './report.ts';

/** Measures how much the file grows for each fact of 200 bytes without history, indexes included. */
export async function size(): Promise<Result[]> {
  const facts = 20_000;
  await using mine = await ours(facts);
  await mine.store.sweep(1);
  // A forget empties the write-ahead log into the file.
  await mine.store.forget('nobody', { kinds: ['fact'] });
  const bytes = statSync(mine.file).size;
  return [
    {
      what: 'size of a 200-byte fact on disk',
      figure: bytes / facts,
      unit: 'bytes',
      bar: { atMost: 510 },
      from: `${facts} facts in ${(bytes / 1024 / 1024).toFixed(1)} MiB`,
    },
  ];
}
