import { MB } from '../../contract/units.ts';
import { SidecarFailure } from './sidecar-failure.ts';

interface ModelSize {
  readonly dimensions: number;
  /** Bytes on disk. Shown to the owner before a download. */
  readonly disk: number;
  readonly memory: number;
}

/** Sizes of popular embedding models. For any other model, the first vector defines the number of dimensions. */
const MODELS: Readonly<Record<string, ModelSize>> = {
  'nomic-embed-text': { dimensions: 768, disk: 275 * MB, memory: 600 * MB },
  'all-minilm': { dimensions: 384, disk: 46 * MB, memory: 200 * MB },
  'mxbai-embed-large': { dimensions: 1024, disk: 670 * MB, memory: 1200 * MB },
  'bge-m3': { dimensions: 1024, disk: 1200 * MB, memory: 1900 * MB },
};

export const knownModel = (name: string): ModelSize | undefined => {
  const bare = name.replace(/:latest$/, '');
  return Object.hasOwn(MODELS, bare) ? MODELS[bare] : undefined;
};

/** Finds the model in the list. Ollama lists a model without a tag as `:latest`. */
export const findInstalled = <Model extends { readonly name: string }>(
  name: string,
  models: readonly Model[],
): Model | undefined => models.find((model) => model.name === name || (!name.includes(':') && model.name === `${name}:latest`));

/** Checks that all vectors have the same length, because vectors of different lengths cannot be compared. */
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

export const inMegabytes = (bytes: number): string => `${Math.round(bytes / MB).toLocaleString('en-US')} MB`;
