/** `id` names the model and its version. Vectors of models with different ids are never compared. */
export interface EmbeddingModel {
  readonly id: string;
  readonly dimensions: number;
}

export interface EmbedOptions {
  /** True for a question that somebody waits for. Such texts go before the texts of facts. */
  readonly urgent: boolean;
  readonly signal?: AbortSignal;
}

/** Turns texts into vectors of unit length, on this machine (R-MEAN-20). */
export interface Embedder {
  /** Undefined while search by meaning is off or the model is unavailable. */
  readonly model: EmbeddingModel | undefined;
  /** Returns one vector for each text, in the same order. Throws a `Failure` with a remedy if the model is unavailable. */
  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]>;
  /** Calls the listener after the model became available or unavailable, or was replaced by another one. */
  onChange(listener: () => void): Disposable;
  /** Removes the model from memory, and rejects the waiting calls. The next call of `embed` loads the model again. */
  release(): void;
}
