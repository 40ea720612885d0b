import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { asFailure } from '../../../../src/contract/failure.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { AUTHOR, LIFETIME, openKeptStore, OWNER } from '../memory.ts';
import { factsOf, type Held, isHeld, type Load, nextOp, type Op, perform, valueOf, WRITERS, writtenBy } from '../ops.ts';
import { type Random, randomFrom } from '../random.ts';
import type { Tell } from '../worker.ts';

interface Given {
  readonly folder: string;
  readonly seed: number;
  /** The id of the first step. */
  readonly firstId: number;
  readonly load?: Load;
}

/** Writes until the process is killed. */
export async function writeForEver({ folder, seed, firstId, load }: Given, tell: Tell): Promise<void> {
  const store = await openKeptStore(folder);
  tell({ says: 'ready', pid: process.pid });
  await write(store, randomFrom(seed), { from: firstId, to: Infinity }, tell, load);
}

/** The control: WAL with synchronous = NORMAL, which does not flush at a commit. The product must not do this. */
export async function writeWithoutFlushing({ folder, firstId }: Given, tell: Tell): Promise<void> {
  const db = new Sqlite(join(folder, 'careless.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec('CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, value TEXT NOT NULL)');
  const put = db.prepare('INSERT INTO kept VALUES (?, ?)');
  tell({ says: 'ready', pid: process.pid });
  for (let id = firstId; ; id += 1) {
    put.run(id, valueOf({ id, size: 100 }));
    tell({ says: 'kept', id });
    if (id % 100 === 0) await wait(1);
  }
}

/** Puts facts one after the other. */
export async function putInSequence({ folder, puts }: { folder: string; puts: number }, tell: Tell): Promise<void> {
  await using store = await openKeptStore(folder);
  tell({ says: 'ready', pid: process.pid });
  for (let id = 1; id <= puts; id += 1) {
    const draft = {
      key: `key-${id}`,
      value: valueOf({ id, size: 100 }),
      category: 'user_facts',
      tags: [],
      author: AUTHOR,
      lifetime: LIFETIME,
    };
    await store.space({ subject: OWNER }, 'fact').put(draft);
    tell({ says: 'kept', id });
  }
}

/** Runs steps while the disk sometimes fails. Afterwards writes must work again in the same process. */
export async function writeAmidFaults({ folder, seed, firstId, steps }: Given & { steps: number }, tell: Tell): Promise<void> {
  const random = randomFrom(seed);
  let store: MemoryStore;
  for (let tries = 1; ; tries += 1) {
    try {
      store = await openKeptStore(folder);
      break;
    } catch (error) {
      tell({ says: 'refused', id: -1, code: asFailure(error).code, why: reasons(error) });
      if (tries === 50) throw error;
    }
  }
  tell({ says: 'ready', pid: process.pid });
  await write(store, random, { from: firstId, to: firstId + steps - 1 }, tell);
  // Each attempt uses up some of the injected faults.
  let id = firstId + steps;
  const last = id + 200;
  for (let inARow = 0; inARow < 20; id += 1) {
    if (id > last) throw new Error('The disk works again, but writes still fail.');
    inARow = (await step(store, nextOp(random, id, 1), tell)) ? inARow + 1 : 0;
  }
  const { file } = store.status();
  await store[Symbol.asyncDispose]();
  tell({ says: 'done', figures: { file: file.at } });
}

/** Eight writers. Each waits for its step to end before the next. */
export async function write(
  store: MemoryStore,
  random: Random,
  ids: { from: number; to: number },
  tell: Tell,
  load?: Load,
): Promise<void> {
  let next = ids.from;
  const one = async (writer: number): Promise<void> => {
    while (next <= ids.to) await step(store, nextOp(random, next++, writer, load), tell);
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, index) => one(index + 1)));
}

export async function step(store: MemoryStore, op: Op, tell: Tell): Promise<boolean> {
  tell({ says: 'asks', op });
  try {
    await perform(store, op);
    tell({ says: 'kept', id: op.id });
    return true;
  } catch (error) {
    tell({ says: 'refused', id: op.id, code: asFailure(error).code, why: reasons(error) });
  }
  await readBack(store, op, tell);
  return false;
}

/** After a refusal, reads the key to learn the outcome. */
async function readBack(store: MemoryStore, op: Op, tell: Tell): Promise<void> {
  try {
    const entry = await factsOf(store, op.session).get(op.key);
    const held: Held = entry && { id: writtenBy(entry.value), size: entry.value.length, category: entry.category };
    tell({ says: 'read', op, held: isHeld(entry, held) ? held : 'unexpected content' });
  } catch (error) {
    tell({ says: 'refused', id: -1, code: asFailure(error).code, why: reasons(error) });
  }
}

const reasons = (error: unknown): string =>
  error instanceof Error
    ? `${error.message}${'code' in error ? ` [${String(error.code)}]` : ''}${error.cause ? ` <- ${reasons(error.cause)}` : ''}`
    : String(error);
