import type { Failure, FailureCode } from '../../contract/failure.ts';
import type { Caller } from '../access/caller.ts';
import type { ExecutionContext, Pack } from './pack.ts';

/** One run of a pack, from its parsed input on. */
export interface HookRun {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session?: string;
  readonly input: unknown;
  /** What the handler will be given; a hook may add to it. */
  readonly context: Changeable;
  /** Whether the handler said that its answer is for this once. */
  readonly uncacheable: boolean;
}

type Changeable = { -readonly [Name in keyof ExecutionContext]: ExecutionContext[Name] };

/** What a hook answers in the handler's place. */
export interface CachedResult {
  readonly output: unknown;
  /** Milliseconds since 1970 until which the same question is answered so. */
  readonly expiresAt: number;
}

/** How a run ended. `cancelled`: its caller gave it up. */
export interface RunResult {
  readonly outcome: 'ok' | FailureCode;
  /** As its schema understood it; undefined unless the outcome is `ok`. */
  readonly output?: unknown;
  /** What the caller is told, unless the outcome is `ok`. */
  readonly failure?: Failure;
  /** Answered by a hook, and until when the same question will be. */
  readonly cachedUntil?: number;
  readonly durationMs: number;
}

/**
 * The seam around every run. Memory, cache and audit are hooks themselves, and come last: a hook of yours sees a run before
 * they do and after they did.
 */
export interface PackHook {
  /** Before the handler, in the order of the hooks. The first that returns something answers the run; what it throws refuses it. */
  before?(run: HookRun): Promise<CachedResult | undefined> | CachedResult | undefined;
  /** Afterwards, in the opposite order and whatever the outcome. What it throws is noted and changes nothing. */
  after?(run: HookRun, ending: RunResult): Promise<void> | void;
}
