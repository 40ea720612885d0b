import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { asFailure } from '../../../../src/contract/failure.ts';
import { HISTORY_VERSIONS, VALUE_BYTES } from '../../../../src/contract/limits.ts';
import type { EntryDraft, MemoryStore } from '../../../../src/core/store/store.ts';
import { openKeptStore, OWNER } from '../memory.ts';
import { factsOf, type Line, nextOp, type Op } from '../ops.ts';
import { Oracle } from '../oracle.ts';
import { randomFrom } from '../random.ts';
import type { Tell } from '../worker.ts';
import { step, write } from './writing.ts';

const BLOCK = Buffer.alloc(4096);
/** The longest time until writes work again. */
const SOON_MS = 1000;

interface Given {
  /** A small private disk. The main process cannot see it, so this worker checks everything. */
  readonly disk: string;
  readonly seed: number;
}

export async function fillTheDisk({ disk, seed }: Given, tell: Tell): Promise<void> {
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const complaints: string[] = [];
  const asked = new Map<number, Op>();
  let amid = 'a fresh disk';
  const hear = (line: Line): void => {
    oracle.hear(line);
    if (line.says === 'asks') asked.set(line.op.id, line.op);
    if (line.says !== 'refused') return;
    const what = asked.get(line.id)?.what ?? 'reading';
    const allowed = line.code === 'disk_full' && amid === 'a full disk' && (what === 'put' || what === 'change');
    if (!allowed) complaints.push(`${what} on ${amid} was refused with ${line.code}: ${line.why}`);
  };
  const ballast = join(disk, 'ballast');
  const fill = (): void => {
    amid = 'a full disk';
    for (;;) {
      try {
        appendFileSync(ballast, BLOCK);
      } catch {
        return;
      }
    }
  };
  const free = (): void => {
    rmSync(ballast);
    amid = 'a disk with space again';
  };
  const memory = join(disk, 'memory');
  let store: MemoryStore = await openKeptStore(memory);
  tell({ says: 'ready', pid: process.pid });

  const steps = async (count: number): Promise<void> => {
    const from = oracle.lastId + 1;
    await write(store, random, { from, to: from + count - 1 }, hear);
  };
  const forget = async (what: string, selection: Parameters<MemoryStore['forget']>[1], subject = OWNER): Promise<void> => {
    try {
      const { purged } = await store.forget(subject, selection);
      if (!purged) complaints.push(`forgetting ${what} did not purge`);
    } catch (error) {
      complaints.push(`forgetting ${what} was refused with ${asFailure(error).code}`);
    }
  };

  await steps(150);
  for (let round = 1; round <= 3; round += 1) {
    fill();
    // Fill until nothing is left; the log still had reserved space.
    while ((oracle.refused.get('disk_full') ?? 0) < round * 20 && complaints.length === 0) await steps(20);
    await readAll(store, oracle);
    await store.space({ subject: OWNER }, 'audit').count();
    // Repeat: each forget can find a smaller reserve.
    for (let more = 0; more < 10; more += 1) {
      const op = { ...nextOp(random, oracle.lastId + 1, 1), what: 'forget' as const };
      await step(store, op, hear);
      await forget(`"${op.key}"`, { kinds: ['fact'], key: op.key, session: op.session });
    }
    free();
    const since = performance.now();
    const worksAgain = () => step(store, { ...nextOp(random, oracle.lastId + 1, 2), what: 'put' }, (line) => oracle.hear(line));
    while (!(await worksAgain()) && performance.now() - since < SOON_MS) await wait(20);
    await steps(20);
  }
  await oracle.examine(store);

  // The largest possible fact with all its versions: more than the reserve can hold at once.
  const largest = 'the largest';
  for (let version = 0; version <= HISTORY_VERSIONS; version += 1) {
    const value = `${version}`.padEnd(VALUE_BYTES, 'v');
    await store.space({ subject: largest }, 'fact').put({ ...aDraft(largest), value });
  }
  fill();
  await forget('the largest fact', { kinds: ['fact'], key: largest }, largest);
  if ((await store.countMatching(largest, { kinds: ['fact'] })) > 0) complaints.push('the largest fact is still there');
  free();

  // After a restart on the full disk, acknowledged writes are there.
  fill();
  await store[Symbol.asyncDispose]();
  const started = await openKeptStore(memory).catch((error: unknown) => asFailure(error).code);
  if (typeof started !== 'string') await started[Symbol.asyncDispose]();
  else if (started !== 'disk_full') complaints.push(`a start on a full disk was refused with ${started}`);
  free();
  store = await openKeptStore(memory);
  await oracle.examine(store);

  fill();
  await forget('everything', { kinds: ['fact', 'history', 'audit', 'cache', 'pack', 'activity'] });
  const left = (await store.namespaces()).length;
  if (left > 0) complaints.push(`${left} namespaces are left after everything was forgotten`);
  await store[Symbol.asyncDispose]();
  const figures = { acknowledged: oracle.acknowledged, refused: oracle.refused.get('disk_full') ?? 0 };
  tell({
    says: 'done',
    figures: {
      ...figures,
      started: typeof started === 'string' ? 'refused' : 'worked',
      wrong: [...oracle.violations, ...complaints].slice(0, 5).join('; '),
    },
  });
}

const aDraft = (key: string): Omit<EntryDraft, 'value'> => ({
  key,
  category: 'user_facts',
  tags: [],
  author: { client: 'faults', origin: 'test', token: '' },
  lifetime: 3_600_000,
});

async function readAll(store: MemoryStore, oracle: Oracle): Promise<void> {
  for (const { session, key } of oracle.keys()) await factsOf(store, session).get(key);
}
