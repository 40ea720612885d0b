import { EMBEDDING } from '../../contract/limits.ts';

const SECOND = 1000;

/** In milliseconds. */
export interface SidecarTimeouts {
  /** From start until it listens on its port. */
  readonly ready: number;
  /** For quick checks. */
  readonly check: number;
  /** For one batch of a request. */
  readonly embed: number;
  readonly request: number;
  /** For a download without progress. */
  readonly pullIdle: number;
  /** From the stop request until it is killed. */
  readonly stopGrace: number;
  /** Delays before restarts; the last one repeats. At most 5 restarts in 10 minutes. */
  readonly retryDelays: readonly number[];
  /** After running this long, earlier failures no longer count. */
  readonly resetFailuresAfter: number;
}

export const SIDECAR_TIMEOUTS: SidecarTimeouts = {
  ready: 20 * SECOND,
  check: 5 * SECOND,
  embed: EMBEDDING.batchTimeout * SECOND,
  request: EMBEDDING.requestTimeout * SECOND,
  pullIdle: 60 * SECOND,
  stopGrace: 3 * SECOND,
  retryDelays: [1, 5, 30, 120, 300].map((seconds) => seconds * SECOND),
  resetFailuresAfter: 600 * SECOND,
};
