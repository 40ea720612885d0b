import { describe, expect, onTestFinished, test } from 'vitest';
import { QUOTA } from '../../../src/contract/limits.ts';
import type { FactVector, MemoryStore, Namespace, Quota, UnembeddedFact } from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { aDraft, anAuthor } from '../../support/store.ts';

const me: Namespace = { subject: 'me' };
const session: Namespace = { subject: 'me', session: 's' };
const MODEL = 'model-1';

/** Bytes that identify the text of a fact, in the place of a real vector. */
const vectorOf = ({ entry }: UnembeddedFact): Uint8Array => Buffer.from(`vector of ${entry.key}: ${entry.value}`);

async function missing(store: MemoryStore, namespace = me, model = MODEL): Promise<UnembeddedFact[]> {
  const all: UnembeddedFact[] = [];
  for (let after: Parameters<MemoryStore['vectors']['missing']>[2]; ;) {
    const { facts, next } = await store.vectors.missing(namespace, model, after);
    all.push(...facts);
    if (!next) return all;
    after = next;
  }
}

/** Gives every fact of a namespace that has none a vector, as the background job does. Returns their number. */
export async function embedAll(store: MemoryStore, namespace = me, model = MODEL): Promise<number> {
  const facts = await missing(store, namespace, model);
  const embedded = facts.map((fact) => ({ ...fact, vector: vectorOf(fact) }));
  return (await store.vectors.put(namespace, model, embedded)).length;
}

export async function storedVectors(store: MemoryStore, namespace = me, model = MODEL): Promise<FactVector[]> {
  const all: FactVector[] = [];
  for (let before: number | undefined; ;) {
    const { vectors, next } = await store.vectors.page(namespace, model, before);
    all.push(...vectors);
    if (next === undefined) return all;
    before = next;
  }
}

const texts = (vectors: readonly FactVector[]): string[] =>
  vectors.map(({ vector }) => Buffer.from(vector).toString()).toSorted();

/** The promises of every store about vectors. */
export function promisesOfVectors(
  name: string,
  open: (clock: ManualClock, quota: Quota) => Promise<MemoryStore>,
  whenIdle: (store: MemoryStore) => Promise<void> = () => Promise.resolve(),
): void {
  const opened = async () => {
    const clock = manualClock();
    const store = await open(clock, QUOTA);
    clock.work = () => whenIdle(store);
    onTestFinished(() => store[Symbol.asyncDispose]());
    const facts = store.space(me, 'fact');
    const put = (key: string, value = key) => facts.put(aDraft({ key, value }));
    return { clock, store, facts, put };
  };

  describe(`${name}: vectors of facts (R-MEAN-10)`, () => {
    test('are missing for new facts, newest first, and are returned after they were stored', async () => {
      const { store, put, clock } = await opened();
      for (const key of ['a', 'b', 'c']) {
        await put(key);
        await clock.advance(MINUTE);
      }
      await store.space(me, 'pack').put(aDraft({ key: 'not a fact' }));
      await store.space(session, 'fact').put(aDraft({ key: 'of another namespace' }));
      const found = await missing(store);
      expect(found.map(({ entry }) => entry.key)).toEqual(['c', 'b', 'a']);
      expect(await embedAll(store)).toBe(3);
      expect(await missing(store)).toEqual([]);
      expect(await store.vectors.count(me, MODEL)).toBe(3);
      expect(texts(await storedVectors(store))).toEqual(['vector of a: a', 'vector of b: b', 'vector of c: c']);
      expect((await missing(store, session)).map(({ entry }) => entry.key)).toEqual(['of another namespace']);
    });

    test('come in pages that together contain all', async () => {
      const { store, facts } = await opened();
      const keys = Array.from({ length: 450 }, (_, index) => `area/${index}`);
      await Promise.all(keys.map((key) => facts.put(aDraft({ key, value: 'v'.repeat(2000) }))));
      expect(new Set((await missing(store)).map(({ entry }) => entry.key))).toEqual(new Set(keys));
      expect(await embedAll(store)).toBe(450);
      const first = await store.vectors.page(me, MODEL);
      expect(first.next).toBe(first.vectors.at(-1)?.row);
      expect(await storedVectors(store)).toHaveLength(450);
    });

    test('are read by row, with the facts that have none', async () => {
      const { store, put } = await opened();
      await put('a');
      const [a] = await missing(store);
      await embedAll(store);
      await put('b');
      const [b] = await missing(store);
      const { facts, vectors } = await store.vectors.read(me, MODEL, [a!.row, b!.row, 999_999]);
      expect(facts.map(({ entry }) => entry.key)).toEqual(['b']);
      expect(vectors).toMatchObject([{ row: a!.row, version: a!.entry.updatedAt }]);
      expect(await store.vectors.read(session, MODEL, [b!.row])).toMatchObject({ facts: [] });
    });

    test('of another model are missing, and are replaced one by one', async () => {
      const { store, put } = await opened();
      await put('a');
      await put('b');
      await embedAll(store);
      const [first, ...rest] = await missing(store, me, 'model-2');
      expect(rest).toHaveLength(1);
      await store.vectors.put(me, 'model-2', [{ ...first!, vector: Buffer.from('new') }]);
      expect(texts(await storedVectors(store, me, 'model-2'))).toEqual(['new']);
      expect(await storedVectors(store)).toHaveLength(1);
      expect(await missing(store)).toHaveLength(1);
    });

    test('are deleted when the fact changes, and kept when it is renewed', async () => {
      const { store, put, facts, clock } = await opened();
      await put('a');
      await put('b');
      await put('c');
      await embedAll(store);
      await clock.advance(HOUR);
      expect((await put('a')).status).toBe('unchanged');
      await facts.change('b', { author: anAuthor, lifetime: 10 * DAY });
      expect(await missing(store)).toEqual([]);
      await put('a', 'new value');
      await facts.change('b', { author: anAuthor, tags: ['new'] });
      expect((await missing(store)).map(({ entry }) => entry.key).toSorted()).toEqual(['a', 'b']);
      expect(texts(await storedVectors(store))).toEqual(['vector of c: c']);
    });

    test('are not stored for a fact that was changed, forgotten or replaced meanwhile', async () => {
      const { store, put } = await opened();
      for (const key of ['changed', 'forgotten', 'kept']) await put(key);
      const found = await missing(store);
      await put('changed', 'new');
      await store.forget('me', { kinds: ['fact'], key: 'forgotten' });
      // The new fact can have the row number of the forgotten one, and the same time.
      await put('other');
      const stored = await store.vectors.put(
        me,
        MODEL,
        found.map((fact) => ({ ...fact, vector: vectorOf(fact) })),
      );
      expect(stored).toEqual(found.filter(({ entry }) => entry.key === 'kept').map(({ row }) => row));
      expect(texts(await storedVectors(store))).toEqual(['vector of kept: kept']);
    });

    test('are deleted with the fact by a forget, an undo, an expiry, a replacement and the end of a session', async () => {
      const { store, put, facts, clock } = await opened();
      await put('forgotten');
      await clock.advance(MINUTE);
      const since = clock.now();
      await put('undone');
      await facts.put(aDraft({ key: 'expired', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'replaced', lifetime: HOUR }));
      await store.space(session, 'fact').put(aDraft({ key: 'of the session' }));
      await embedAll(store);
      await embedAll(store, session);
      expect(await store.vectors.count(me, MODEL)).toBe(4);

      await store.forget('me', { kinds: ['fact'], key: 'forgotten' });
      expect(await store.vectors.count(me, MODEL)).toBe(3);
      const note = aDraft({ key: 'note', category: 'activity' });
      expect(await facts.revert('undone', { client: anAuthor.client, since }, note)).toMatchObject({ what: 'removed' });
      expect(await store.vectors.count(me, MODEL)).toBe(2);
      await clock.advance(HOUR - MINUTE);
      await store.forget('me', { kinds: ['fact'], session: 's' });
      expect(await storedVectors(store, session)).toEqual([]);
      await clock.advance(2 * MINUTE);
      await put('replaced', 'again');
      await clock.advance(HOUR);
      await store.sweep(100);
      expect(await store.vectors.count(me, MODEL)).toBe(0);
      expect(await missing(store)).toHaveLength(1);
    });

    test('are made again for a fact that was forgotten and restored', async () => {
      const { store, put, facts } = await opened();
      await put('a');
      await embedAll(store);
      const before = await facts.withHistory('a');
      await store.forget('me', { kinds: ['fact'], key: 'a' });
      await facts.restoreForgotten(before!, aDraft({ key: 'note', category: 'activity' }));
      expect(await storedVectors(store)).toEqual([]);
      expect(await embedAll(store)).toBe(1);
    });

    test('can be deleted all at once', async () => {
      const { store, facts } = await opened();
      await Promise.all(Array.from({ length: 300 }, (_, index) => facts.put(aDraft({ key: `area/${index}` }))));
      await store.space(session, 'fact').put(aDraft());
      await embedAll(store);
      await embedAll(store, session);
      await store.vectors.clear();
      expect(await store.vectors.count(me, MODEL)).toBe(0);
      expect(await store.vectors.count(session, MODEL)).toBe(0);
      expect(await facts.count()).toBe(300);
    });

    test('do not count towards the quota', async () => {
      const { store, put } = await opened();
      await put('a');
      const before = await store.usage('me');
      await embedAll(store);
      expect(await store.usage('me')).toEqual(before);
    });
  });
}
