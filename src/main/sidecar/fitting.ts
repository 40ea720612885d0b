import { knownModel } from './models.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** Vectors of one model are all as long: what was indexed by others could not be compared with them. */
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
