import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyState } from '../../src/contract/status.ts';
import { keySources } from '../../src/core/crypto/keys/key-sources.ts';
import { keychainSource, type loadKeychain } from '../../src/core/crypto/keys/keychain.ts';
import { type KeySources, openStore } from '../../src/core/store/open-store.ts';
import type { EntryDraft, Entry, MemoryStore, Space } from '../../src/core/store/store.ts';
import { systemClock } from '../../src/core/time/clock.ts';

const home = String(process.env['HOME']);

/** The memory that the first start made; its key is in the keyring of this home. */
export const MEMORY = join(home, 'memory');
/** A folder that goes from one machine to another. */
export const CARRIED = join(home, '../carried');
export const FACTS = 20;

/** The places of a key, for a memory in that folder. */
export type Places = (folder: string) => KeySources;

/** What a desktop has: the environment leads to a session and names no key, so the keychain it is. */
export const keychain: Places = (folder) => keySources({ environment: process.env, folder, desktop: true });

/** What a server has whose owner hands in the key. */
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
  author: { client: 'lane', transport: 'test', token: '' },
  lifetime: 24 * 3_600_000,
});

export async function remember(store: MemoryStore, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, number) => factsOf(store).put(fact(number))));
}

/** Every fact, opened, with what it must say. */
export async function recall(store: MemoryStore, count: number): Promise<void> {
  const read: (Entry | undefined)[] = [];
  for (let number = 0; number < count; number += 1) read.push(await factsOf(store).get(fact(number).key));
  assert.deepEqual(
    read.map((entry) => entry?.value),
    read.map((_, number) => fact(number).value),
  );
  assert.equal(await factsOf(store).count(), count);
}

/** A memory of the same key in a folder of its own. */
export function copyOf(name: string, folder = MEMORY): string {
  const copy = join(home, name);
  cpSync(folder, copy, { recursive: true });
  return copy;
}

/** Of all the bytes that hold entries: the file, and a log that must hold nothing. */
export function fingerprint(folder: string): string {
  const log = join(folder, 'memory.db-wal');
  assert.equal(existsSync(log) ? statSync(log).size : 0, 0, 'the log holds something');
  return createHash('sha256')
    .update(readFileSync(join(folder, 'memory.db')))
    .digest('hex');
}

/** The place of the key, for a hand that puts something else there. Undefined `memory`: that of the prepared one. */
export async function placeOf(folder = MEMORY): Promise<ReturnType<typeof keychainSource>> {
  let found = '';
  const store = await open(folder, () => (memory) => {
    found = memory;
    return [];
  });
  await store[Symbol.asyncDispose]();
  return keychainSource(found, { creates: true });
}

/** The key of the prepared memory; the keyring must be unlocked. */
export async function theKey(folder = MEMORY): Promise<Buffer> {
  const reading = await (await placeOf(folder)).read('current');
  assert.equal(reading.at, 'found');
  return reading.at === 'found' ? reading.key : Buffer.alloc(0);
}

/** The state by its name, with a remedy and without a secret. */
export function assertState(state: KeyState, at: KeyState['at']): string {
  assert.equal(state.at, at, JSON.stringify(state));
  if (state.at === 'ok') return `from ${state.source}`;
  assert.match(state.remedy, /\S+ \S+ \S+/);
  assert.doesNotMatch(JSON.stringify(state), /[0-9a-f]{32}/i);
  return 'why' in state ? state.why : state.remedy;
}

export const refused = (step: Promise<unknown>, code = 'key_unavailable'): Promise<void> =>
  assert.rejects(step, (error) => error instanceof Error && 'code' in error && error.code === code);
