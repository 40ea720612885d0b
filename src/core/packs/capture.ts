import { hash } from 'node:crypto';
import { containsCredential } from './cache.ts';
import { canonicalJson } from './canonical-json.ts';
import type { PackHook } from './hook.ts';

/** Key prefix for the last output of each request. */
const CAPTURED = 'captured/';

/**
 * Stores each output in the pack's own memory, if the pack asks for it. Outputs that may not be cached are not stored
 * (R-PACK-30).
 */
export const captureHook: PackHook = {
  after({ pack, input, context: { memory, credential }, uncacheable: forThisOnce }, { outcome, output, cachedUntil }) {
    if (pack.memory?.capture !== true || outcome !== 'ok' || cachedUntil !== undefined || forThisOnce) return undefined;
    const question = canonicalJson(input);
    if (question === undefined || containsCredential(JSON.stringify(output), credential)) return undefined;
    return memory?.store(CAPTURED + hash('sha256', question), output);
  },
};
