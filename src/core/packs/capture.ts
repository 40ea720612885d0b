import { hash } from 'node:crypto';
import { repeatsCredential } from './cache.ts';
import { canonical } from './canonical.ts';
import type { Hook } from './hook.ts';

/** Below it stands what a pack answered last, for each question. */
const CAPTURED = 'captured/';

/**
 * Keeps what a run answered in the pack's own memory, for a pack that asks for it: its handler finds there later what it said
 * before. What may not be given again is not kept either (R-PACK-30).
 */
export const captureHook: Hook = {
  after({ pack, input, context: { memory, credential }, forThisOnce }, { outcome, output, cachedUntil }) {
    if (pack.memory?.capture !== true || outcome !== 'ok' || cachedUntil !== undefined || forThisOnce) return undefined;
    const question = canonical(input);
    if (question === undefined || repeatsCredential(JSON.stringify(output), credential)) return undefined;
    return memory?.store(CAPTURED + hash('sha256', question), output);
  },
};
