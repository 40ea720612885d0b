import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import type { SidecarState } from '../../contract/status.ts';

export interface Vectors {
  /** One vector for each text, in the same order. All vectors have the same length. */
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number;
}

/**
 * Creates embeddings on this machine, with an Ollama process that the program or the owner started (R-EMB). Offers only the
 * embedding function of Ollama. If embedding is unavailable, throws a `Failure` with a remedy.
 */
export interface Embeddings {
  readonly state: SidecarState;
  readonly model: string;
  report(): Promise<EmbeddingsReport>;
  configure(choice: SetEmbeddingsInput): Promise<void>;
  approve(sha256: string): Promise<void>;
  /** Starts the download of the model. Resolves once the download has started. */
  pull(): Promise<void>;
  cancelPull(): Promise<void>;
  embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors>;
}

const unavailable = (): Promise<never> =>
  Promise.reject(
    new Failure(
      'embeddings_unavailable',
      'This process cannot create embeddings; send the request to the program that serves this memory.',
    ),
  );

export const noEmbeddings: Embeddings = {
  state: { at: 'off' },
  model: '',
  report: unavailable,
  configure: unavailable,
  approve: unavailable,
  pull: unavailable,
  cancelPull: unavailable,
  embed: unavailable,
};
