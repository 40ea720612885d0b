import { hash } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import { authorOf } from '../access/caller.ts';
import { clientId } from '../store/entry.ts';
import type { Entry, MemoryStore } from '../store/store.ts';
import { canonicalJson } from './canonical-json.ts';
import type { RunResult, PackHook, CachedResult, HookRun } from './hook.ts';
import { whyPrivate } from './private-output.ts';

/**
 * The result that callers waiting for the same request receive. `unshared`: the output must not be shared, so each caller runs
 * the pack itself. `cut short`: the run ended early, so the next waiting caller runs the pack.
 */
type SharedResult = { readonly ready: CachedResult } | { readonly failure: Failure } | 'unshared' | 'cut short';

/** A run in progress. Callers with the same request wait for its result. */
interface SharedRun {
  readonly place: string;
  readonly key: string;
  readonly result: Promise<SharedResult>;
  readonly settle: (result: SharedResult) => void;
}

/**
 * Caches pack outputs by subject, credential, pack version and input (R-PACK-03). Cached outputs have their own key space, in
 * which facts cannot be stored.
 */
export function cacheHook(store: MemoryStore): PackHook {
  const sharedRuns = new Map<string, SharedRun>();
  const runsByHook = new WeakMap<HookRun, SharedRun>();

  const cached = async ({ caller: { subject } }: HookRun, key: string): Promise<CachedResult | undefined> => {
    const entry = await store.space({ subject }, 'cache').get(key);
    return entry && { output: (JSON.parse(entry.value) as { output: unknown }).output, expiresAt: entry.expiresAt };
  };

  const lookUp = async (run: HookRun): Promise<CachedResult | undefined> => {
    const key = keyOf(run);
    if (key === undefined) return undefined;
    const place = `${run.caller.subject}:${key}`;
    for (;;) {
      const ready = await cached(run, key);
      if (ready) return ready;
      const shared = sharedRuns.get(place);
      if (!shared) break;
      const result = await shared.result;
      if (result === 'unshared') return undefined;
      // If one caller cancels, times out or loses its token, the other callers must not fail. The next waiting caller runs the
      // pack.
      if (result === 'cut short') continue;
      if ('failure' in result) throw result.failure;
      return result.ready;
    }
    // A caller that has cancelled must not run the pack for the callers that wait.
    run.context.signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<SharedResult>();
    const shared = { place, key, result: promise, settle: resolve };
    sharedRuns.set(place, shared);
    runsByHook.set(run, shared);
    return undefined;
  };

  const keep = async (run: HookRun, key: string, runResult: RunResult): Promise<SharedResult> => {
    if (runResult.failure) return run.context.signal.aborted ? 'cut short' : { failure: runResult.failure };
    const value = JSON.stringify({ output: runResult.output });
    const { credential } = run.context;
    if (run.uncacheable || credential?.revoked === true || Buffer.byteLength(value) > PACK.cacheBytes) return 'unshared';
    if (whyPrivate(value, credential) !== undefined) return 'unshared';
    const { entry } = await store.space({ subject: run.caller.subject }, 'cache').put({
      key,
      value,
      category: 'cache',
      tags: [],
      author: authorOf(run.caller),
      lifetime: lifetimeOf(run),
    });
    return { ready: { output: runResult.output, expiresAt: entry.expiresAt } };
  };

  return {
    before: (run) => {
      const { cache, bypassesCache: bypasses } = run.pack.memory ?? {};
      return cache === true && bypasses?.(run.input) !== true ? lookUp(run) : undefined;
    },

    async after(run, runResult) {
      const shared = runsByHook.get(run);
      if (!shared) return;
      let result: SharedResult = 'unshared';
      try {
        result = await keep(run, shared.key, runResult);
      } finally {
        sharedRuns.delete(shared.place);
        shared.settle(result);
      }
    },
  };
}

/** Deletes the cached outputs of these packs, for every subject and credential. */
export async function forgetCachedOutputs(store: MemoryStore, packs: readonly string[]): Promise<void> {
  const matches = ({ key }: Entry): boolean => packs.some((name) => key.startsWith(`${name}/`));
  const subjects = new Set((await store.namespaces('cache')).map(({ namespace }) => namespace.subject));
  for (const subject of subjects) await store.forget(subject, { kinds: ['cache'], matches });
}

/**
 * Returns the cache key of a request. The key starts with the pack's name, so that the outputs of a pack can be deleted. An output of
 * a quarantined client is not shared, because it can depend on what the client stored in the pack's memory. Returns undefined if the
 * input cannot be represented as unambiguous JSON.
 */
function keyOf({ pack: { name, version, own }, caller, input, context: { credential } }: HookRun): string | undefined {
  const quarantined = caller.quarantined && clientId(caller);
  const question = canonicalJson({ version, revision: own?.revision, credential: credential?.id, quarantined, input });
  return question === undefined ? undefined : `${name}/${hash('sha256', question)}`;
}

function lifetimeOf({ pack: { memory } }: HookRun): number {
  return (memory?.ttl ?? 0) * 1000;
}

/** Throws if a pack caches outputs without a valid `ttl`, because such outputs would never expire. */
export function requireCacheTtl(name: string, memory: { readonly cache?: true; readonly ttl?: number } | undefined): void {
  if (memory?.cache !== true) return;
  const { ttl = 0 } = memory;
  if (Number.isInteger(ttl) && ttl >= 1 && ttl <= PACK.cacheTtl) return;
  throw new Failure(
    'invalid_input',
    `${name} caches outputs without a valid memory.ttl; set it to a whole number of seconds from 1 to ${PACK.cacheTtl}.`,
  );
}

/** Key prefix for the last output of each request. */
const CAPTURED = 'captured/';

/**
 * Stores each output in the pack's own memory, if the pack sets `capture`. Outputs that must not be cached are not stored
 * (R-PACK-30).
 */
export const captureHook: PackHook = {
  after({ pack, input, context: { memory, credential }, uncacheable: forThisOnce }, { outcome, output, cachedUntil }) {
    if (pack.memory?.capture !== true || outcome !== 'ok' || cachedUntil !== undefined || forThisOnce) return undefined;
    const question = canonicalJson(input);
    if (question === undefined || whyPrivate(JSON.stringify(output), credential) !== undefined) return undefined;
    return memory?.store(CAPTURED + hash('sha256', question), output);
  },
};
