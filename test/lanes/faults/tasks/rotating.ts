import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import type { KeySource, KeySlot } from '../../../../src/core/crypto/keys/key-source.ts';
import { prepareFolder } from '../../../../src/core/file/prepare-folder.ts';
import type { PutResult, Space } from '../../../../src/core/store/store.ts';
import { AUTHOR, LIFETIME, openKeptStore, OWNER } from '../memory.ts';
import { randomFrom } from '../random.ts';
import type { Tell } from '../worker.ts';

/** Moments between the changes of the database and of the key source. */
export type Moment = `${'before' | 'after'} ${'keep' | 'remove'} ${KeySlot}`;

interface Given {
  readonly folder: string;
  readonly rows: number;
  readonly seed: number;
  /** When the program kills itself. */
  readonly dieAt?: Moment;
}

const PUTS_AT_ONCE = 250;
const SPOT_CHECKS = 50;

export async function fillForRotation({ folder, rows }: Given, tell: Tell): Promise<void> {
  const source = fileSource(folder);
  prepareFolder(folder);
  await source.save('current', randomBytes(32));
  await using store = await openKeptStore(folder, source);
  tell({ says: 'ready', pid: process.pid });
  const facts = store.space({ subject: OWNER }, 'fact');
  for (let row = 0; row < rows; row += PUTS_AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(PUTS_AT_ONCE, rows - row) }, (_, index) => putRow(facts, row + index, 1)));
  }
}

/** Resumes the interrupted rotation or starts a new one, while reading and writing rows. */
export async function rotate({ folder, rows, seed, dieAt }: Given, tell: Tell): Promise<void> {
  const random = randomFrom(seed);
  await using store = await openKeptStore(folder, dieAt === undefined ? fileSource(folder) : mortal(fileSource(folder), dieAt));
  tell({ says: 'ready', pid: process.pid });
  const facts = store.space({ subject: OWNER }, 'fact');
  const mustRead = async (row: number): Promise<void> => {
    const found = (await facts.get(`row-${row}`))?.value;
    if (!found?.startsWith(`row ${row}, version `)) throw new Error(`row ${row} reads ${found ?? 'nothing'}`);
  };
  for (let check = 0; check < SPOT_CHECKS; check += 1) await mustRead(random.between(0, rows - 1));

  const resumed = store.status().rotation.at === 'running';
  const isOver = (): boolean => store.status().rotation.at === 'none';
  const rotated = resumed ? untilItIs(isOver) : (store.upkeep?.rotate() ?? Promise.resolve());
  rotated.catch(() => undefined);
  for (let version = 2; !isOver(); version += 1) {
    const row = random.between(0, rows - 1);
    await putRow(facts, row, version);
    await mustRead(row);
    await wait(5);
  }
  await rotated;

  for (let row = 0; row < rows; row += 1) await mustRead(row);
  const verified = await store.upkeep?.verify();
  tell({
    says: 'done',
    figures: { resumed: String(resumed), broken: verified?.broken ?? -1, structure: String(verified?.structure) },
  });
}

const putRow = (facts: Space, row: number, version: number): Promise<PutResult> =>
  facts.put({
    key: `row-${row}`,
    value: `row ${row}, version ${version}`,
    category: 'user_facts',
    tags: ['rotated'],
    author: AUTHOR,
    lifetime: LIFETIME,
  });

async function untilItIs(over: () => boolean): Promise<void> {
  while (!over()) await wait(5);
}

/** A key source that kills the program at the given moment. */
function mortal(source: Required<KeySource>, moment: Moment): Required<KeySource> {
  const at = (now: Moment): void => {
    if (now === moment) process.kill(process.pid, 'SIGKILL');
  };
  return {
    ...source,
    async save(slot, key) {
      at(`before keep ${slot}`);
      await source.save(slot, key);
      at(`after keep ${slot}`);
    },
    async remove(slot) {
      at(`before remove ${slot}`);
      await source.remove(slot);
      at(`after remove ${slot}`);
    },
  };
}
