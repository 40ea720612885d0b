import type { FactMeaning, Nearest } from '../../src/core/meaning/nearest.ts';
import type { MemoryStore, Namespace } from '../../src/core/store/store.ts';

type NearestQuery = Parameters<FactMeaning['nearest']>[2];

interface Meanings {
  /** The cosines of the question and the facts, by key. */
  readonly cosines: Readonly<Record<string, number>>;
  /** The cosine of any two different facts. */
  readonly similarity?: number;
  readonly partial?: boolean;
}

/** Finds facts by cosines that the test chooses, and records the questions. */
export class ChosenMeaning implements FactMeaning {
  isAvailable = true;
  isWarm = true;
  readonly asked: string[] = [];
  /** Runs before each answer. */
  onQuestion: (query: NearestQuery) => Promise<void> | void = () => undefined;
  readonly #meanings: Meanings | undefined;
  readonly #keys = new Map<number, string>();

  /** Without meanings, the model is unavailable. */
  constructor(meanings?: Meanings) {
    this.#meanings = meanings;
  }

  /** Learns the rows of the facts that are written from now on. */
  watch(store: MemoryStore): Disposable {
    return store.onEntryEvent((event) => {
      if (event.what === 'stored' && event.kind === 'fact') this.#keys.set(event.row, event.entry.key);
    });
  }

  warm(): void {
    this.isWarm = true;
  }

  async nearest(_: Namespace, text: string, query: NearestQuery): Promise<Nearest | undefined> {
    this.asked.push(text);
    await this.onQuestion(query);
    if (this.#meanings === undefined) return undefined;
    const { cosines, similarity = 0, partial = false } = this.#meanings;
    const cosine = (row: number): number | undefined => cosines[this.#keys.get(row) ?? ''];
    const rows = [...this.#keys.keys()].flatMap((row) => ({ row, cosine: cosine(row) ?? NaN })).filter((one) => one.cosine > -1);
    return {
      rows: rows.toSorted((one, other) => other.cosine - one.cosine).slice(0, query.limit),
      cosine,
      similarity: () => similarity,
      background: 0.05,
      partial,
    };
  }
}
