import type { Failure, FailureCode } from '../../contract/failure.ts';
import type { Caller } from '../access/caller.ts';
import type { ExecutionContext, Pack } from './pack.ts';

/** One run of a pack, after its input was validated. */
export interface HookRun {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session?: string;
  readonly input: unknown;
  /** Passed to the handler. Hooks may add to it. */
  readonly context: Changeable;
  /** Whether the handler called `doNotCache`. */
  readonly uncacheable: boolean;
}

type Changeable = { -readonly [Name in keyof ExecutionContext]: ExecutionContext[Name] };

/** An output that a hook returns instead of running the handler. */
export interface CachedResult {
  readonly output: unknown;
  /** When the output expires, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** How a run ended. `cancelled`: the caller cancelled it. */
export interface RunResult {
  readonly outcome: 'ok' | FailureCode;
  /** The validated output; undefined unless the outcome is `ok`. */
  readonly output?: unknown;
  /** The failure the caller receives; undefined if the outcome is `ok`. */
  readonly failure?: Failure;
  /** If a hook returned a cached output: when that output expires. */
  readonly cachedUntil?: number;
  readonly durationMs: number;
}

/**
 * Extends every run. Memory, cache and audit are hooks too. They come last, so other hooks run before them and finish after
 * them.
 */
export interface PackHook {
  /**
   * Runs before the handler, in hook order. The first hook that returns a result answers the run; a hook that throws refuses
   * it.
   */
  before?(run: HookRun): Promise<CachedResult | undefined> | CachedResult | undefined;
  /** Runs after the handler, in reverse hook order, whatever the outcome. Errors are logged and change nothing. */
  after?(run: HookRun, ending: RunResult): Promise<void> | void;
}
