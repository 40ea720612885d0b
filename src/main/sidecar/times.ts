import { EMBEDDING } from '../../contract/limits.ts';

const SECOND = 1000;

/** How long is waited for what, in ms. */
export interface Times {
  /** From its start until it listens. */
  readonly ready: number;
  /** For what takes no time when all is well. */
  readonly look: number;
  /** For a part of a question. */
  readonly embed: number;
  readonly question: number;
  /** Without a step while a model is fetched. */
  readonly pull: number;
  /** Until it is ended at once. */
  readonly grace: number;
  /** Before it is tried again, the last one from then on. At most 5 times in 10 minutes. */
  readonly again: readonly number[];
  /** After so long a life all is forgotten that went wrong before. */
  readonly settled: number;
}

export const TIMES: Times = {
  ready: 20 * SECOND,
  look: 5 * SECOND,
  embed: EMBEDDING.patience * SECOND,
  question: EMBEDDING.wholePatience * SECOND,
  pull: 60 * SECOND,
  grace: 3 * SECOND,
  again: [1, 5, 30, 120, 300].map((seconds) => seconds * SECOND),
  settled: 600 * SECOND,
};
