import type { Entry, MemoryStore } from '../../../src/core/store/store.ts';
import { AUTHOR, LIFETIME, OWNER } from './memory.ts';
import type { Random } from './random.ts';

/** One step of one writer. Only this writer uses the key, and only after its previous step has ended. */
export interface Op {
  readonly id: number;
  readonly writer: number;
  readonly what: 'put' | 'change' | 'forget' | 'forget session';
  readonly session: string;
  readonly key: string;
  readonly size: number;
  readonly category: string;
}

/** The content of a key. Undefined: no fact. */
export type Held = { readonly id: number; readonly size: number; readonly category: string } | undefined;

/** A worker reports each step before it starts and after it has ended, in order. */
export type Line =
  | { readonly says: 'ready'; readonly pid: number }
  | { readonly says: 'asks'; readonly op: Op }
  | { readonly says: 'kept'; readonly id: number }
  | { readonly says: 'refused'; readonly id: number; readonly code: string; readonly why: string }
  | { readonly says: 'read'; readonly op: Op; readonly held: Held | 'unexpected content' }
  | { readonly says: 'done'; readonly figures: Readonly<Record<string, number | string>> };

export const WRITERS = 8;
const KEYS = 16;
const CATEGORIES = ['user_facts', 'preferences', 'projects'] as const;

const sessionOf = (writer: number): string => `session-${writer}`;

/** The mix of steps. A forget empties the write-ahead log, so faults inside a long log need a load without forgets. */
export type Load = 'mixed' | 'no forgets';

/** 70 % puts, 15 % forgets, 15 % changes; a third of them in a session of the writer. */
export function nextOp(random: Random, id: number, writer: number, load: Load = 'mixed'): Op {
  const chosen = random.between(1, 1000);
  const what =
    chosen <= (load === 'mixed' ? 700 : 850) ? 'put' : chosen <= 845 ? 'forget' : chosen <= 850 ? 'forget session' : 'change';
  const session = what === 'forget session' || random.chance(33) ? sessionOf(writer) : '';
  const size = Math.round(10 * ((16 * 1024) / 10) ** (random.between(0, 1000) / 1000));
  return {
    id,
    writer,
    what,
    session,
    key: `writer-${writer}/${random.between(1, KEYS)}`,
    size,
    category: random.one(CATEGORIES),
  };
}

/** Every value is unique and contains the id of its step. */
export const valueOf = ({ id, size }: { id: number; size: number }): string =>
  `${id} `.padEnd(size, `${(id * 2_654_435_761) >>> 0} `);

/** Returns the id of the step that wrote a value. */
export const writtenBy = (value: string): number => Number(value.slice(0, value.indexOf(' ')));

export const after = (op: Op, held: Held): Held => {
  if (op.what === 'put') return { id: op.id, size: op.size, category: op.category };
  return op.what === 'change' ? held && { ...held, category: op.category } : undefined;
};

export const isHeld = (entry: Entry | undefined, held: Held): boolean =>
  held === undefined ? entry === undefined : entry?.value === valueOf(held) && entry.category === held.category;

const namespaceOf = (session: string) => (session === '' ? { subject: OWNER } : { subject: OWNER, session });

export const factsOf = (store: MemoryStore, session: string) => store.space(namespaceOf(session), 'fact');

export async function perform(store: MemoryStore, op: Op): Promise<void> {
  const { key, session, category } = op;
  const facts = factsOf(store, session);
  if (op.what === 'put')
    await facts.put({ key, value: valueOf(op), category, tags: ['fault'], author: AUTHOR, lifetime: LIFETIME });
  else if (op.what === 'change') await facts.change(key, { category, author: AUTHOR });
  else
    await store.forget(OWNER, op.what === 'forget' ? { kinds: ['fact'], key, session } : { kinds: ['fact', 'audit'], session });
}
