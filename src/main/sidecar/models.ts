interface Known {
  readonly dimensions: number;
  /** Bytes, so that the owner can be told before a byte is fetched. */
  readonly disk: number;
  readonly memory: number;
}

const MB = 1_000_000;

/** Models that embed and are asked for most. Of another one it is seen what it makes, and then held to that. */
const MODELS: Readonly<Record<string, Known>> = {
  'nomic-embed-text': { dimensions: 768, disk: 275 * MB, memory: 600 * MB },
  'all-minilm': { dimensions: 384, disk: 46 * MB, memory: 200 * MB },
  'mxbai-embed-large': { dimensions: 1024, disk: 670 * MB, memory: 1200 * MB },
  'bge-m3': { dimensions: 1024, disk: 1200 * MB, memory: 1900 * MB },
};

export const knownModel = (name: string): Known | undefined => {
  const bare = name.replace(/:latest$/, '');
  return Object.hasOwn(MODELS, bare) ? MODELS[bare] : undefined;
};

/** Ollama lists a model that was named without a tag as its latest. */
export const includesModel = (name: string, names: readonly string[]): boolean =>
  names.includes(name) || (!name.includes(':') && names.includes(`${name}:latest`));
