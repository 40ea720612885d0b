import { environmentSource } from '../../../src/core/crypto/keys/environment-source.ts';
import type { KeySource } from '../../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { Author, MemoryStore } from '../../../src/core/store/store.ts';
import { systemClock } from '../../../src/core/time/clock.ts';

/** The subject of everything that the lane writes. */
export const OWNER = 'the-owner';
export const AUTHOR: Author = { client: 'fault-lane', origin: 'mcp', token: 'token-1' };
export const LIFETIME = 90 * 24 * 3600 * 1000;

const KEY = environmentSource({ HELMDECK_MEMORY_KEY: '5e'.repeat(32) });

/** Opens the program's own store with the system clock. */
export const openKeptStore = (folder: string, source: KeySource | undefined = KEY): Promise<MemoryStore> =>
  openStore({ folder, clock: systemClock, sources: () => (source ? [source] : []) });
