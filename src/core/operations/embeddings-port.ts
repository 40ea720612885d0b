import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import type { SidecarState } from '../../contract/status.ts';

export interface Vectors {
  /** In the order of the texts, each as long as the others. */
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number;
}

/**
 * Embeddings of this machine, by an Ollama that we start or that the owner adopted (R-EMB). Of all that it can do nothing but
 * embedding goes through here. What keeps it away is a `Failure` with a remedy, and costs nobody else anything.
 */
export interface Embeddings {
  readonly state: SidecarState;
  /** The one model that is set. */
  readonly model: string;
  report(): Promise<EmbeddingsReport>;
  configure(choice: SetEmbeddingsInput): Promise<void>;
  approve(sha256: string): Promise<void>;
  /** Fulfils when it has begun. */
  pull(): Promise<void>;
  cancelPull(): Promise<void>;
  embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors>;
}

const absent = (): Promise<never> =>
  Promise.reject(new Failure('embeddings_unavailable', 'There are no embeddings here; ask the program that serves this memory.'));

/** Where a memory is opened without them. */
export const noEmbeddings: Embeddings = {
  state: { at: 'off' },
  model: '',
  report: absent,
  configure: absent,
  approve: absent,
  pull: absent,
  cancelPull: absent,
  embed: absent,
};
