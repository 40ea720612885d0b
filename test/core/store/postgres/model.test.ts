import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Finder } from '../../../../src/core/search/finder.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock } from '../../../support/clock.ts';
import { withLatePages } from '../../../support/late-pages.ts';
import { startPostgres } from '../../../support/postgres.ts';
import { randomFrom } from '../../../support/random.ts';
import { aDraft, anAuthor, withKey } from '../../../support/store.ts';

const PROCESSES = 4;
const SUBJECTS = 8;
/** The lane runs 20,000 operations. */
const OPERATIONS = 20 * Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25);

interface ModelFact {
  readonly value: string;
  readonly category: string;
  readonly earlier: readonly string[];
}

test('four processes that share a database behave as one memory (R-ISO-01, R-OPS-14)', async () => {
  const server = await startPostgres();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const database = server.newMemory();
  const clock = manualClock();
  const processes = await Promise.all(
    Array.from({ length: PROCESSES }, async () => {
      const store = await PostgresStore.open({ database, clock, sources: withKey(), quota: { facts: 1000, bytes: 1e9 } });
      const finder = new Finder(store);
      onTestFinished(async () => {
        finder[Symbol.dispose]();
        await store[Symbol.asyncDispose]();
      });
      return { store, finder };
    }),
  );
  await Promise.all(
    Array.from({ length: SUBJECTS }, async (_, at) => {
      const subject = `subject ${at}`;
      const random = randomFrom(at + 1);
      const model = new Map<string, ModelFact>();
      for (let operation = 0; operation < OPERATIONS / SUBJECTS; operation += 1) {
        const { store, finder } = processes[random(PROCESSES)]!;
        const facts = store.space({ subject }, 'fact');
        const key = `key ${random(12)}`;
        const known = model.get(key);
        const run = async (): Promise<{ seen: unknown; wanted: unknown }> => {
          switch (random(8)) {
            case 0:
            case 1: {
              const [value, category] = [`value${operation}x of subject${at}x`, `c${random(3)}`];
              const { status } = await facts.put(aDraft({ key, value, category }));
              model.set(key, { value, category, earlier: known ? [known.value, ...known.earlier].slice(0, 20) : [] });
              return { seen: status, wanted: known ? 'updated' : 'created' };
            }
            case 2: {
              const changed = await facts.change(key, { category: 'changed', author: anAuthor });
              if (known && known.category !== 'changed') {
                model.set(key, { ...known, category: 'changed', earlier: [known.value, ...known.earlier].slice(0, 20) });
              }
              return { seen: changed?.value, wanted: known?.value };
            }
            case 3: {
              const { deleted } = await store.forget(subject, { kinds: ['fact'], key });
              model.delete(key);
              return { seen: deleted, wanted: known ? 1 : 0 };
            }
            case 4: {
              // A new index is built from pages that arrive late, while another process forgets a fact.
              using fresh = new Finder(withLatePages(store, () => wait(random(20))));
              const other = processes[random(PROCESSES)]!.store;
              const building = fresh.find({ subject }, { texts: [`subject${at}x`], limit: 50 });
              await Promise.all([building, other.forget(subject, { kinds: ['fact'], key })]);
              model.delete(key);
              const { found } = await fresh.find({ subject }, { texts: [`subject${at}x`], limit: 50 });
              const wanted = new Map([...model].map(([name, { value }]) => [name, value]));
              return { seen: new Map(found.map(({ fact }) => [fact.key, fact.value])), wanted };
            }
            case 5: {
              const { found } = await finder.find({ subject }, { texts: [`subject${at}x`], limit: 50 });
              const wanted = new Map([...model].map(([name, { value }]) => [name, value]));
              return { seen: new Map(found.map(({ fact }) => [fact.key, fact.value])), wanted };
            }
            default: {
              const [entry, history, count] = await Promise.all([facts.get(key), facts.history(key), facts.count()]);
              const earlier = history.map(({ value }) => value);
              return {
                seen: { value: entry?.value, category: entry?.category, earlier, count },
                wanted: { value: known?.value, category: known?.category, earlier: known?.earlier ?? [], count: model.size },
              };
            }
          }
        };
        const { seen, wanted } = await run();
        expect(seen, `${subject}, operation ${operation}, ${key}`).toEqual(wanted);
      }
      for (const { store } of processes) {
        const { entries } = await store.space({ subject }, 'fact').page({ sort: 'updated', limit: 50 });
        expect(new Map(entries.map(({ key, value }) => [key, value]))).toEqual(
          new Map([...model].map(([key, { value }]) => [key, value])),
        );
      }
    }),
  );
});
