import type { Failure, FailureCode } from '../../contract/failure.ts';
import type { Caller } from '../access/caller.ts';
import type { ExecutionContext, Pack } from './pack.ts';

/** One run of a pack, after its input was validated. */
export interface HookRun {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session?: string;
  readonly input: unknown;
  /** The context that is passed to the handler. Hooks can add fields to it. */
  readonly context: Changeable;
  /** True if the handler called `doNotCache`. */
  readonly uncacheable: boolean;
}

type Changeable = { -readonly [Name in keyof ExecutionContext]: ExecutionContext[Name] };

/** An output that a hook returns, so that the handler is not run. */
export interface CachedResult {
  readonly output: unknown;
  /** The time when the output expires, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** The result of a run. The code `cancelled` means that the caller cancelled the run. */
export interface RunResult {
  readonly outcome: 'ok' | FailureCode;
  /** The validated output; undefined unless the outcome is `ok`. */
  readonly output?: unknown;
  /** The failure that the caller receives; undefined if the outcome is `ok`. */
  readonly failure?: Failure;
  /** The time when the output expires, if a hook returned a cached output. Milliseconds since 1970. */
  readonly cachedUntil?: number;
  readonly durationMs: number;
}

/**
 * Code that runs before and after every run of a pack. Memory, cache and audit are hooks too. They are the last hooks, so other
 * hooks run before them and finish after them.
 */
export interface PackHook {
  /**
   * Called before the handler, in hook order. If a hook returns a result, that result is the output of the run, and the handler
   * is not run. If a hook throws, the run is refused.
   */
  before?(run: HookRun): Promise<CachedResult | undefined> | CachedResult | undefined;
  /** Called after the handler, in reverse hook order, whatever the outcome. Errors are logged and do not change the outcome. */
  after?(run: HookRun, ending: RunResult): Promise<void> | void;
}
