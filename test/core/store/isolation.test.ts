import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HISTORY_VERSIONS } from '../../../src/contract/limits.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { Namespace, SpaceKind } from '../../../src/core/store/store.ts';
import { manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { aDraft, anAuthor, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** `npm run lane:many` sets more. */
const OPERATIONS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 1000);
const RUN = 1000;

interface Modelled {
  value: string;
  category: string;
  createdAt: number;
  updatedAt: number;
  expiresAt: number;
  versions: { value: string; expiresAt: number }[];
}

// Names that a careless join or comparison would confuse.
const namespaces: Namespace[] = [
  { subject: 'a' },
  { subject: 'A' },
  { subject: 'b' },
  { subject: 'a:b' },
  { subject: 'a', session: 'b' },
  { subject: 'a', session: 'c' },
  { subject: 'a%' },
  { subject: '__proto__' },
  { subject: 'ab' },
  { subject: 'unknown' },
];
const keys = ['k', 'K', 'k/', 'k/1', 'k%', 'k_', '__proto__', 'é', 'e\u0301'];
const kinds: SpaceKind[] = ['fact', 'fact', 'fact', 'pack', 'audit'];
const categories = ['x', 'y'];

const where = { namespace: fc.constantFrom(...namespaces), kind: fc.constantFrom(...kinds) };
const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      ...where,
      key: fc.constantFrom(...keys),
      value: fc.integer({ min: 0, max: 5 }),
      category: fc.constantFrom(...categories),
      minutes: fc.integer({ min: 1, max: 240 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      ...where,
      key: fc.constantFrom(...keys),
      category: fc.option(fc.constantFrom(...categories), { nil: undefined }),
      minutes: fc.option(fc.integer({ min: 1, max: 240 }), { nil: undefined }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('get' as const), ...where, key: fc.constantFrom(...keys) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      ...where,
      category: fc.option(fc.constantFrom(...categories), { nil: undefined }),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('forget' as const),
      ...where,
      by: fc.constantFrom('key' as const, 'category' as const, 'kind' as const, 'match' as const),
      key: fc.constantFrom(...keys),
      category: fc.constantFrom(...categories),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), minutes: fc.integer({ min: 0, max: 90 }) }) },
);

const placeOf = ({ subject, session }: Namespace, kind: SpaceKind): string => JSON.stringify([subject, session, kind]);

describe(`a store against a plain map, ${OPERATIONS} random operations of many subjects (R-ISO-01, R-ISO-02, R-STORE-08)`, () => {
  test('all results are equal', { timeout: 600_000 }, async () => {
    const runs = fc.sample(fc.array(operation, { minLength: RUN, maxLength: RUN, size: 'max' }), {
      numRuns: Math.ceil(OPERATIONS / RUN),
      seed: 20_261_118,
    });
    let operations = 0;
    for (const run of runs) {
      const clock = manualClock();
      await using store = await openStore({ folder: tempFolder(), clock, sources: withKey() });
      const model = new Map<string, Map<string, Modelled>>();
      const living = (namespace: Namespace, kind: SpaceKind): Map<string, Modelled> => {
        const place = placeOf(namespace, kind);
        const entries = model.get(place) ?? new Map<string, Modelled>();
        model.set(place, entries);
        for (const [key, entry] of entries) {
          if (entry.expiresAt <= clock.now()) entries.delete(key);
          entry.versions = entry.versions.filter(({ expiresAt }) => expiresAt > clock.now());
        }
        return entries;
      };

      for (const step of run) {
        operations += 1;
        if (step.do === 'pass') {
          await clock.advance(step.minutes * MINUTE);
          continue;
        }
        const space = store.space(step.namespace, step.kind);
        const entries = living(step.namespace, step.kind);
        switch (step.do) {
          case 'put': {
            const value = `value ${step.value}`;
            const { key, category } = step;
            const before = entries.get(key);
            const { status, entry } = await space.put(
              aDraft({ key, value, category, tags: [], lifetime: step.minutes * MINUTE }),
            );
            const expiresAt = clock.now() + step.minutes * MINUTE;
            if (!before) {
              expect(status).toBe('created');
              entries.set(key, { value, category, createdAt: clock.now(), updatedAt: clock.now(), expiresAt, versions: [] });
            } else if (before.value === value && before.category === category) {
              expect(status).toBe('unchanged');
              entries.set(key, { ...before, expiresAt });
            } else {
              expect(status).toBe('updated');
              const versions =
                step.kind === 'fact'
                  ? [{ value: before.value, expiresAt: before.expiresAt }, ...before.versions].slice(0, HISTORY_VERSIONS)
                  : [];
              entries.set(key, {
                ...before,
                value,
                category,
                updatedAt: Math.max(clock.now(), before.updatedAt + 1),
                expiresAt,
                versions,
              });
            }
            expect({ ...entry, versions: entries.get(key)?.versions }).toMatchObject({ ...entries.get(key), key });
            break;
          }
          case 'change': {
            const { key, category, minutes } = step;
            const before = entries.get(key);
            const change = { ...(category && { category }), ...(minutes && { lifetime: minutes * MINUTE }), author: anAuthor };
            const after = await space.change(key, change);
            expect(after === undefined).toBe(before === undefined);
            if (!before) break;
            const expiresAt = minutes ? clock.now() + minutes * MINUTE : before.expiresAt;
            if (!category || category === before.category) entries.set(key, { ...before, expiresAt });
            else {
              const versions =
                step.kind === 'fact'
                  ? [{ value: before.value, expiresAt: before.expiresAt }, ...before.versions].slice(0, HISTORY_VERSIONS)
                  : [];
              entries.set(key, {
                ...before,
                category,
                updatedAt: Math.max(clock.now(), before.updatedAt + 1),
                expiresAt,
                versions,
              });
            }
            break;
          }
          case 'get': {
            const modelled = entries.get(step.key);
            const found = await space.get(step.key);
            if (!modelled) expect(found).toBeUndefined();
            else {
              const { versions, ...rest } = modelled;
              expect(found).toMatchObject({ key: step.key, ...rest });
              const history = step.kind === 'fact' ? await space.history(step.key) : [];
              expect(history.map(({ value }) => value)).toEqual(versions.map(({ value }) => value));
            }
            break;
          }
          case 'list': {
            const seen: string[] = [];
            let page = await space.page({
              sort: 'updated',
              limit: step.limit,
              ...(step.category && { category: step.category }),
            });
            for (;;) {
              seen.push(...page.entries.map(({ key, value }) => `${key}=${value}`));
              if (!page.next) break;
              page = await space.page({
                sort: 'updated',
                limit: step.limit,
                after: page.next,
                ...(step.category && { category: step.category }),
              });
            }
            const wanted = [...entries]
              .filter(([, entry]) => !step.category || entry.category === step.category)
              .map(([key, { value }]) => `${key}=${value}`);
            expect(seen.toSorted()).toEqual(wanted.toSorted());
            expect(await space.count(step.category)).toBe(wanted.length);
            break;
          }
          case 'forget': {
            const { subject } = step.namespace;
            const selection = {
              kinds: [step.kind],
              ...(step.by === 'key' && { key: step.key }),
              ...(step.by === 'category' && { category: step.category }),
              ...(step.by === 'match' && { matches: ({ value }: { value: string }) => value === 'value 3' }),
            };
            let deleted = 0;
            for (const namespace of namespaces.filter((one) => one.subject === subject)) {
              const theirs = living(namespace, step.kind);
              for (const [key, entry] of theirs) {
                if (step.by === 'key' && key !== step.key) continue;
                if (step.by === 'category' && entry.category !== step.category) continue;
                if (step.by === 'match' && entry.value !== 'value 3') continue;
                theirs.delete(key);
                deleted += 1;
              }
            }
            expect(await store.forget(subject, selection)).toMatchObject({ deleted, purged: true });
            break;
          }
        }
      }
      await clock.advance(5 * HOUR);
      expect(await store.upkeep?.verify()).toEqual({ entries: 0, broken: 0, structure: [] });
    }
    expect(operations).toBeGreaterThanOrEqual(OPERATIONS);
  });
});
