import { describe, expect, test } from 'vitest';
import { ForgetInput, needsKey } from '../../../src/contract/forget.ts';
import { needsKey as selectionNeedsKey } from '../../../src/core/store/forgetting.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import { selectionOf } from '../../../src/core/store/scope.ts';
import type { MemoryStore, Namespace, SpaceKind } from '../../../src/core/store/store.ts';
import { manualClock } from '../../support/clock.ts';
import { aDraft, anAuthor } from '../../support/store.ts';

const me: Namespace = { subject: 'me' };
const session: Namespace = { subject: 'me', session: 's' };

/** The entries, each with a name. */
const entries: [Namespace, SpaceKind, string, Partial<Parameters<typeof aDraft>[0]>][] = [
  [me, 'fact', 'prefs/a', { category: 'prefs', tags: ['t', 'x%'] }],
  [me, 'fact', 'prefs/ab', { category: 'prefs', tags: ['T'] }],
  [me, 'fact', 'prefs%a', { category: 'other', tags: ['t'] }],
  [me, 'fact', 'PREFS/a', { category: 'other', tags: [], author: { ...anAuthor, client: 'codex' } }],
  [me, 'fact', 'x_y', { category: 'prefs_', tags: [], author: { ...anAuthor, client: 'Codex' } }],
  [session, 'fact', 'prefs/s', { category: 'prefs', tags: ['t'] }],
  [me, 'audit', 'pack_history/gh/00000000000000000001', { category: 'pack_history', tags: [] }],
  [me, 'audit', 'pack_history/gh.issues/00000000000000000001', { category: 'pack_history', tags: [] }],
  [me, 'audit', 'pipeline_history/gh/00000000000000000001', { category: 'pipeline_history', tags: [] }],
  [me, 'cache', 'gh/00', { category: 'cache', tags: [] }],
  [me, 'cache', 'gh.issues/00', { category: 'cache', tags: [] }],
  [session, 'pack', 'gh/last', { category: 'pack', tags: ['t'] }],
];

async function filled(): Promise<MemoryStore> {
  const store = new RamStore(manualClock());
  for (const [namespace, kind, key, over] of entries) await store.space(namespace, kind).put(aDraft({ key, ...over }));
  await store.space({ subject: 'you' }, 'fact').put(aDraft({ key: 'prefs/a', category: 'prefs', tags: ['t'] }));
  return store;
}

const audits = entries.filter(([, kind]) => kind === 'audit').map(([, , key]) => key);
const facts = entries.filter(([, kind]) => kind === 'fact').map(([, , key]) => key);

describe('what each scope of the forget language deletes', () => {
  test.each<{ scope: string; goes: string[]; id: string }>([
    { scope: 'all', goes: entries.map(([, , key]) => key), id: 'R-FORGET-04' },
    { scope: 'facts', goes: facts, id: 'R-FORGET-05' },
    { scope: 'packs', goes: audits.filter((key) => key.startsWith('pack_')), id: 'R-FORGET-06' },
    { scope: 'pipelines', goes: audits.filter((key) => key.startsWith('pipeline_')), id: 'R-FORGET-06' },
    { scope: 'pack:gh', goes: ['pack_history/gh/00000000000000000001', 'gh/00'], id: 'R-FORGET-06' },
    { scope: 'pack:g', goes: [], id: 'R-FORGET-06' },
    { scope: 'pack:pack_history', goes: [], id: 'R-FORGET-06' },
    { scope: 'pipeline:gh', goes: ['pipeline_history/gh/00000000000000000001'], id: 'R-FORGET-06' },
    { scope: 'key:prefs/a', goes: ['prefs/a'], id: 'R-FORGET-07' },
    { scope: 'key:prefs', goes: [], id: 'R-FORGET-07' },
    { scope: 'prefix:prefs/', goes: ['prefs/a', 'prefs/ab', 'prefs/s'], id: 'R-FORGET-08' },
    { scope: 'prefix:prefs%', goes: ['prefs%a'], id: 'R-FORGET-02' },
    { scope: 'prefix:x_', goes: ['x_y'], id: 'R-FORGET-02' },
    { scope: 'prefix:%', goes: [], id: 'R-FORGET-02' },
    { scope: 'category:prefs', goes: ['prefs/a', 'prefs/ab', 'prefs/s'], id: 'R-FORGET-08' },
    { scope: 'category: PREFS', goes: ['prefs/a', 'prefs/ab', 'prefs/s'], id: 'R-FORGET-02' },
    { scope: 'tag:X%', goes: [], id: 'R-FORGET-02' },
    { scope: 'tag:t', goes: ['prefs/a', 'prefs%a', 'prefs/s'], id: 'R-FORGET-08' },
    { scope: 'tag:x%', goes: ['prefs/a'], id: 'R-FORGET-02' },
    { scope: 'client:codex', goes: ['PREFS/a'], id: 'R-FORGET-08' },
    { scope: 'client:nobody', goes: [], id: 'R-FORGET-08' },
  ])('$scope ($id)', async ({ scope, goes }) => {
    const store = await filled();
    const selection = selectionOf(ForgetInput().parse({ scope }).scope);
    expect(await store.countMatching('me', selection)).toBe(goes.length);
    expect((await store.forget('me', selection)).deleted).toBe(goes.length);
    const left: string[] = [];
    for (const [namespace, kind, key] of entries) if (await store.space(namespace, kind).get(key)) left.push(key);
    expect(left).toEqual(entries.map(([, , key]) => key).filter((key) => !goes.includes(key)));
    expect(await store.space({ subject: 'you' }, 'fact').count()).toBe(1);
  });

  test('callers and the store agree on the scopes that need the key (R-FORGET-11)', () => {
    const scopes = [
      'all',
      'facts',
      'packs',
      'pipelines',
      'pack:a',
      'pipeline:a',
      'key:a',
      'prefix:a',
      'category:a',
      'tag:a',
      'client:a',
    ];
    for (const text of scopes) {
      const { scope } = ForgetInput().parse({ scope: text });
      expect(selectionNeedsKey(selectionOf(scope)), text).toBe(needsKey(scope));
    }
  });
});
