/** Writes `test/fixtures/memory-v<schema>.db` with the current code. Run it once when a schema is released, never again for that schema. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrations } from '../../src/core/store/migrations/index.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import type { Namespace, SpaceKind } from '../../src/core/store/store.ts';
import { DAY, manualClock, START } from '../../test/support/clock.ts';
import { aDraft, withKey } from '../../test/support/store.ts';

const target = join(import.meta.dirname, '../../test/fixtures', `memory-v${migrations.length}.db`);
if (existsSync(target))
  throw new Error(`Schema ${migrations.length} already has a fixture. The fixture of a released schema must not change.`);

const folder = mkdtempSync(join(tmpdir(), 'helmdeck-fixture-'));
try {
  {
    await using store = await openStore({ folder, clock: manualClock(), sources: withKey() });
    const put = (namespace: Namespace, kind: SpaceKind, key: string) => store.space(namespace, kind).put(aDraft({ key }));
    const me: Namespace = { subject: 'me' };
    await store.space(me, 'fact').put(aDraft());
    await store.space(me, 'fact').put(aDraft({ value: 'Svelte' }), aDraft({ key: 'note', category: 'activity' }));
    for (const key of ['a', 'b', 'gone']) await put(me, 'fact', key);
    await put(me, 'audit', 'pack_history/p/1');
    await put(me, 'cache', 'c');
    await put({ subject: 'me', session: 's' }, 'pack', 'p');
    await put({ subject: 'you' }, 'fact', 'theirs');
    await put({ subject: 'you' }, 'pack', 'p');
    await store.forget('me', { kinds: ['fact'], key: 'gone' });
    const { facts } = await store.vectors.missing(me, 'a model');
    await store.vectors.put(
      me,
      'a model',
      facts.map((fact) => ({ ...fact, vector: Buffer.from('a vector') })),
    );
    await store.upkeep?.makeRecoveryKey();
    await store.vault.write('a secret', 'of the program');
    await store.vault.revokeToken('a token', START + 365 * DAY);
  }
  copyFileSync(join(folder, 'memory.db'), target);
} finally {
  rmSync(folder, { recursive: true });
}
