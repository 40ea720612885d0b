import { randomInt } from 'node:crypto';

/** Where hashes begin that decide what a look-up costs: who writes facts must not be able to choose ones that collide. */
export const HASH_SEED = randomInt(2 ** 32);

/** FNV-1a over UTF-16 units: for tables in memory, not for secrets. */
export function hash(text: string, start = 0x811c9dc5, from = 0, to = text.length): number {
  let hashed = start;
  for (let at = from; at < to; at += 1) hashed = Math.imul(hashed ^ text.charCodeAt(at), 0x01000193);
  return (hashed ^ (hashed >>> 15)) >>> 0;
}
