import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ChangeNotifier } from '../../../src/core/store/events.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { SpaceChange } from '../../../src/core/store/store.ts';
import { manualClock, HOUR } from '../../support/clock.ts';
import { aDraft, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const aChange = (subject: string, kind: SpaceChange['kind'] = 'fact', session?: string): SpaceChange => ({
  namespace: session === undefined ? { subject } : { subject, session },
  kind,
});

describe('changes (R-OPS-12)', () => {
  test('are notified once a turn for each namespace and kind, also with similar names', async () => {
    const changes = new ChangeNotifier();
    const heard: SpaceChange[] = [];
    changes.subscribe((changed) => heard.push(changed));
    const all = [aChange('a'), aChange('a', 'pack'), aChange('a', 'fact', 'b'), aChange('a:b'), aChange('a","b'), aChange('A')];
    for (let times = 0; times < 3; times += 1) for (const one of all) changes.notify(one);
    expect(heard).toEqual([]);
    await turn();
    expect(heard).toEqual(all);
    await turn();
    expect(heard).toHaveLength(all.length);
    changes.notify(aChange('a'));
    await turn();
    expect(heard).toHaveLength(all.length + 1);
  });

  test('reach each listener until it unsubscribes, and one that subscribed twice twice', async () => {
    const changes = new ChangeNotifier();
    const heard: string[] = [];
    const listen = (changed: SpaceChange): void => void heard.push(changed.namespace.subject);
    const [one, other] = [changes.subscribe(listen), changes.subscribe(listen)];
    changes.notify(aChange('a'));
    await turn();
    expect(heard).toEqual(['a', 'a']);
    one[Symbol.dispose]();
    one[Symbol.dispose]();
    changes.notify(aChange('b'));
    await turn();
    expect(heard).toEqual(['a', 'a', 'b']);
    changes.notify(aChange('c'));
    // Unsubscribed before the notification.
    other[Symbol.dispose]();
    await turn();
    expect(heard).toHaveLength(3);
  });

  test('made by a listener are notified in the next turn', async () => {
    const changes = new ChangeNotifier();
    const heard: string[] = [];
    changes.subscribe(({ namespace }) => {
      heard.push(namespace.subject);
      if (heard.length < 3) changes.notify(aChange(`${namespace.subject}.`));
    });
    changes.notify(aChange('a'));
    await turn();
    expect(heard).toEqual(['a']);
    await turn();
    await turn();
    expect(heard).toEqual(['a', 'a.', 'a..']);
  });
});

test('a notified change is in the file already (R-OPS-12, R-DUR-01)', async () => {
  const [folder, clock] = [tempFolder(), manualClock()];
  await using store = await openStore({ folder, clock, sources: withKey() });
  const stranger = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const count = stranger.prepare('SELECT count(*) FROM entry WHERE kind = 1').pluck();
  const seen: unknown[] = [];
  store.onChange(() => seen.push(count.get()));
  const facts = store.space({ subject: 'me' }, 'fact');
  await Promise.all(['a', 'b'].map((key) => facts.put(aDraft({ key, lifetime: HOUR }))));
  await turn();
  await clock.advance(HOUR);
  await turn();
  stranger.close();
  expect(seen).toEqual([2, 0]);
});

test('an expired entry is notified, and an expired version, which no list shows, is not', async () => {
  const clock = manualClock();
  await using store = await openStore({ folder: tempFolder(), clock, sources: withKey() });
  const facts = store.space({ subject: 'me' }, 'fact');
  await Promise.all(Array.from({ length: 450 }, (_, index) => facts.put(aDraft({ key: `k${index}`, lifetime: HOUR }))));
  await facts.put(aDraft({ key: 'versions', value: 'short', lifetime: 2 * HOUR }));
  await facts.put(aDraft({ key: 'versions', value: 'long', lifetime: 9 * HOUR }));
  await turn();
  const told: string[] = [];
  store.onChange(({ kind }) => told.push(kind));
  await clock.advance(HOUR);
  for (let turns = 0; turns < 200; turns += 1) await turn();
  // Once for each slice of the sweep.
  expect(new Set(told)).toEqual(new Set(['fact']));
  expect(await facts.count()).toBe(1);
  told.splice(0);
  await clock.advance(HOUR);
  await turn();
  expect(await facts.history('versions')).toEqual([]);
  expect(told).toEqual([]);
});
