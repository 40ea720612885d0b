import { EMBEDDING } from '../../contract/limits.ts';

const SECOND = 1000;

/** How long is waited for what, in ms. */
export interface SidecarTimeouts {
  /** From its start until it listens. */
  readonly ready: number;
  /** For what takes no time when all is well. */
  readonly check: number;
  /** For a part of a question. */
  readonly embed: number;
  readonly request: number;
  /** Without a step while a model is fetched. */
  readonly pullIdle: number;
  /** Until it is ended at once. */
  readonly stopGrace: number;
  /** Before it is tried again, the last one from then on. At most 5 times in 10 minutes. */
  readonly retryDelays: readonly number[];
  /** After so long a life all is forgotten that went wrong before. */
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
