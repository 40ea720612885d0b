import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyState } from '../../src/contract/status.ts';
import type { KeySources } from '../../src/core/crypto/keys/key-source.ts';
import { keySources } from '../../src/core/crypto/keys/key-sources.ts';
import { keychainSource, type loadKeychain } from '../../src/core/crypto/keys/keychain.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import type { EntryDraft, Entry, MemoryStore, Space } from '../../src/core/store/store.ts';
import { systemClock } from '../../src/core/time/clock.ts';

const home = String(process.env['HOME']);

/** The memory of the first start. Its key is in the keyring of this home. */
export const MEMORY = join(home, 'memory');
/** The folder that is copied between machines. */
export const CARRIED = join(home, '../carried');
export const FACTS = 20;

/** The key sources for a memory in the given folder. */
export type Places = (folder: string) => KeySources;

/** A desktop: the environment has a session and names no key, so the keychain is used. */
export const keychain: Places = (folder) => keySources({ environment: process.env, folder, desktop: true });

/** A server: the owner provides the key in the environment. */
export const handedIn =
  (environment: Readonly<Record<string, string>>): Places =>
  (folder) =>
    keySources({ environment, folder, desktop: false });

export const loadedBy =
  (load: typeof loadKeychain): Places =>
  () =>
  (memory) => [keychainSource(memory, { creates: true, load })];

export const open = (folder: string, places: Places = keychain): Promise<MemoryStore> =>
  openStore({ folder, clock: systemClock, sources: places(folder) });

export const clock = systemClock;

export const factsOf = (store: MemoryStore): Space => store.space({ subject: 'me' }, 'fact');

export const fact = (number: number): EntryDraft => ({
  key: `fact/${number}`,
  value: `what is known of ${number}`,
  category: 'user_facts',
  tags: [],
  author: { client: 'lane', origin: 'test', token: '' },
  lifetime: 24 * 3_600_000,
});

export async function remember(store: MemoryStore, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, number) => factsOf(store).put(fact(number))));
}

/** Reads every fact and checks its value. */
export async function recall(store: MemoryStore, count: number): Promise<void> {
  const read: (Entry | undefined)[] = [];
  for (let number = 0; number < count; number += 1) read.push(await factsOf(store).get(fact(number).key));
  assert.deepEqual(
    read.map((entry) => entry?.value),
    read.map((_, number) => fact(number).value),
  );
  assert.equal(await factsOf(store).count(), count);
}

/** Creates a memory with the same key in its own folder. */
export function copyOf(name: string, folder = MEMORY): string {
  const copy = join(home, name);
  cpSync(folder, copy, { recursive: true });
  return copy;
}

/** A hash of all bytes with entries: the file. The log must be empty. */
export function fingerprint(folder: string): string {
  const log = join(folder, 'memory.db-wal');
  assert.equal(existsSync(log) ? statSync(log).size : 0, 0, 'the log is not empty');
  return createHash('sha256')
    .update(readFileSync(join(folder, 'memory.db')))
    .digest('hex');
}

/** The keychain items of a memory, so that a test can replace its key. Default: the prepared memory. */
export async function placeOf(folder = MEMORY): Promise<ReturnType<typeof keychainSource>> {
  let found = '';
  const store = await open(folder, () => (memory) => {
    found = memory;
    return [];
  });
  await store[Symbol.asyncDispose]();
  return keychainSource(found, { creates: true });
}

/** Reads the key of the prepared memory. The keyring must be unlocked. */
export async function theKey(folder = MEMORY): Promise<Buffer> {
  const reading = await (await placeOf(folder)).read('current');
  assert.equal(reading.at, 'found');
  return reading.at === 'found' ? reading.key : Buffer.alloc(0);
}

/** Checks the state's name, and that it has a remedy and no secret. */
export function assertState(state: KeyState, at: KeyState['at']): string {
  assert.equal(state.at, at, JSON.stringify(state));
  if (state.at === 'ok') return `from ${state.source}`;
  assert.match(state.remedy, /\S+ \S+ \S+/);
  assert.doesNotMatch(JSON.stringify(state), /[0-9a-f]{32}/i);
  return 'why' in state ? state.why : state.remedy;
}

export const refused = (step: Promise<unknown>, code = 'key_unavailable'): Promise<void> =>
  assert.rejects(step, (error) => error instanceof Error && 'code' in error && error.code === code);
