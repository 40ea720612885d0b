import { Failure } from '../../contract/failure.ts';
import type { MeaningChoice, MeaningState } from '../../contract/status.ts';
import type { Embedder } from '../meaning/embedder.ts';

/** The model of search by meaning, and the owner's choice of it. */
export interface MeaningModel extends Embedder {
  readonly choice: MeaningChoice;
  readonly state: MeaningState;
  /** Whether the bundled model is installed. */
  readonly installed: boolean;
  /** Uses another model, or tries the same model again after a failure. */
  choose(choice: MeaningChoice): void;
}

/** The vectors of all facts. The core's `MeaningIndex` makes them in the background. */
export interface MeaningVectors {
  /** Counts all facts, and the facts that have a vector of the present model. */
  progress(): Promise<{ readonly done: number; readonly total: number }>;
  /** Deletes all vectors and makes them again in the background. */
  rebuild(): Promise<void>;
}

/** For a process that has no model. */
export const noMeaning: MeaningModel = {
  choice: 'off',
  state: { at: 'off' },
  installed: false,
  model: undefined,
  choose: () => undefined,
  embed: () => Promise.reject(new Failure('embeddings_unavailable', 'This process has no model for search by meaning.')),
  onChange: () => ({ [Symbol.dispose]: () => undefined }),
  release: () => undefined,
};
