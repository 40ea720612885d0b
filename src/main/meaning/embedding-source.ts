import type { MeaningState } from '../../contract/status.ts';
import type { EmbeddingModel, EmbedOptions } from '../../core/meaning/embedder.ts';

/** A model that computes vectors: the bundled one, or one that the owner's Ollama serves. */
export interface EmbeddingSource extends Disposable {
  readonly model: EmbeddingModel | undefined;
  readonly state: MeaningState;
  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]>;
  release(): void;
}
