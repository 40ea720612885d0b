import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../src/contract/failure.ts';
import type { Embedder, EmbeddingModel, EmbedOptions } from '../../src/core/meaning/embedder.ts';

/**
 * A small model for tests of mechanics: texts with common words have similar vectors. It knows no meaning.
 */
export class WordEmbedder implements Embedder {
  /** The texts of each call, in order. */
  readonly calls: { readonly texts: readonly string[]; readonly urgent: boolean }[] = [];
  /** Called with the texts of each call. If it throws, the call fails. */
  work: (texts: readonly string[]) => void | Promise<void> = () => undefined;
  released = 0;
  #model: EmbeddingModel | undefined = { id: 'words-1', dimensions: 64 };
  readonly #listeners = new Set<() => void>();

  get model(): EmbeddingModel | undefined {
    return this.#model;
  }

  set model(model: EmbeddingModel | undefined) {
    this.#model = model;
    for (const listener of this.#listeners) listener();
  }

  /** The texts of facts that were embedded. */
  get facts(): string[] {
    return this.calls.filter(({ urgent }) => !urgent).flatMap(({ texts }) => texts);
  }

  async embed(texts: readonly string[], { urgent, signal }: EmbedOptions): Promise<readonly Float32Array[]> {
    const model = this.#model;
    if (!model) throw new Failure('embeddings_unavailable', 'There is no model.');
    this.calls.push({ texts, urgent });
    await this.work(texts);
    await nextTurn();
    signal?.throwIfAborted();
    return texts.map((text) => vectorOf(text, model.dimensions));
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  release(): void {
    this.released += 1;
  }
}

function vectorOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (const word of text.toLowerCase().split(/\W+/).filter(Boolean)) {
    const hash = createHash('sha256').update(word).digest();
    for (let at = 0; at < dimensions; at += 1)
      vector[at] = (vector[at] ?? 0) + ((hash[at % 32] ?? 0) - 127.5) * (at < 32 ? 1 : -1);
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}
