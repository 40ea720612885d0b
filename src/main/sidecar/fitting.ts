import { knownModel } from './models.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** Ensures that all vectors have the same length: vectors of different lengths cannot be compared. */
export class DimensionCheck {
  readonly #model: string;
  #dimensions: number | undefined;

  constructor(model: string) {
    this.#model = model;
  }

  require(vectors: readonly (readonly number[])[], count: number): void {
    const wanted = knownModel(this.#model)?.dimensions ?? this.#dimensions ?? vectors[0]?.length ?? 0;
    if (vectors.length !== count || wanted === 0 || vectors.some(({ length }) => length !== wanted)) {
      throw new SidecarFailure('wrong_dimension');
    }
    this.#dimensions = wanted;
  }
}
