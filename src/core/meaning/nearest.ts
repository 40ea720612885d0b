import type { Namespace } from '../store/store.ts';

interface NearestQuery {
  /** Maximum number of facts to return. */
  readonly limit: number;
  readonly signal?: AbortSignal;
}

/** The facts of a namespace whose meaning is nearest to a question. */
export interface Nearest {
  /** Facts by their row number, nearest first. The cosine of a long fact is that of its best part. */
  readonly rows: readonly { readonly row: number; readonly cosine: number }[];
  /** The cosine of any fact, or undefined if it has no vector. */
  cosine(row: number): number | undefined;
  /** The cosine of two facts, or undefined if either has no vector. */
  similarity(one: number, other: number): number | undefined;
  /** The mean cosine of the question and all facts, which differs between models. */
  readonly background: number;
  /** True if some facts have no vector yet. */
  readonly partial: boolean;
}

/** Finds facts by their meaning. */
export interface FactMeaning {
  /** False while search by meaning is off or the model is unavailable. A search by words then costs nothing more. */
  readonly isAvailable: boolean;
  /** Whether the model answered a moment ago, so that the next question does not wait until it is loaded. */
  readonly isWarm: boolean;
  /** Begins to load the model and the vectors of a namespace, because a question will probably follow, and keeps the model loaded. */
  warm(namespace: Namespace): void;
  /** Returns undefined while search by meaning is off or the model is unavailable. */
  nearest(namespace: Namespace, text: string, query: NearestQuery): Promise<Nearest | undefined>;
}
