import { hash } from 'node:crypto';
import { containsCredential } from './cache.ts';
import { canonicalJson } from './canonical-json.ts';
import type { PackHook } from './hook.ts';

/** Below it stands what a pack answered last, for each question. */
const CAPTURED = 'captured/';

/**
 * Keeps what a run answered in the pack's own memory, for a pack that asks for it: its handler finds there later what it said
 * before. What may not be given again is not kept either (R-PACK-30).
 */
export const captureHook: PackHook = {
  after({ pack, input, context: { memory, credential }, uncacheable: forThisOnce }, { outcome, output, cachedUntil }) {
    if (pack.memory?.capture !== true || outcome !== 'ok' || cachedUntil !== undefined || forThisOnce) return undefined;
    const question = canonicalJson(input);
    if (question === undefined || containsCredential(JSON.stringify(output), credential)) return undefined;
    return memory?.store(CAPTURED + hash('sha256', question), output);
  },
};
