import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { FromModel, ModelFiles, PinnedFile, ToModel } from './model-messages.ts';

// The process that runs the bundled model. Embeds one text at a time, so that a question waits for one text at most. Has no
// network code, and exits when the program closes the channel.

interface Engine {
  embed(texts: readonly string[]): readonly (readonly number[])[];
}

interface EngineModule {
  readonly Embedder: new (weights: Uint8Array, tokenizer: Uint8Array, config: Uint8Array, maxTokens: number) => Engine;
}

/** The channel of Electron's utility process, which replaces that of Node. */
interface ElectronPort {
  on(event: 'message', listener: (event: { readonly data: ToModel }) => void): void;
  postMessage(message: FromModel): void;
}

const { parentPort } = process as { readonly parentPort?: ElectronPort };
let engine: Engine | undefined;

if (parentPort) {
  parentPort.on('message', ({ data }) => handle(data, parentPort.postMessage.bind(parentPort)));
} else {
  process.on('message', (message: ToModel) => handle(message, (answer) => process.send?.(answer)));
  process.once('disconnect', () => process.exit());
}

function handle(message: ToModel, answer: (message: FromModel) => void): void {
  try {
    if ('files' in message) {
      const damaged = load(message.files, message.maxTokens);
      answer(damaged === undefined ? { is: 'loaded' } : { is: 'damaged', file: damaged });
      return;
    }
    if (!engine) throw new Error('The model is not loaded.');
    const [vector = []] = engine.embed([message.text]);
    answer({ is: 'vector', vector: Float32Array.from(vector) });
  } catch {
    // After an error inside WebAssembly, its memory can be inconsistent. The program starts a new process.
    process.exit(1);
  }
}

/** Loads the model. Returns the name of a file that is missing or is not the pinned one; nothing of that file has run. */
function load(files: ModelFiles, maxTokens: number): string | undefined {
  const contents = new Map<string, Uint8Array>();
  for (const file of Object.values(files) as PinnedFile[]) {
    const bytes = readFile(file.path);
    if (!bytes || createHash('sha256').update(bytes).digest('hex') !== file.sha256) return file.name;
    contents.set(file.path, bytes);
  }
  const bytesOf = ({ path }: PinnedFile): Uint8Array => contents.get(path) ?? new Uint8Array();
  // The engine is a CommonJS module that reads the WebAssembly file next to it.
  const { Embedder } = createRequire(files.engine.path)(files.engine.path) as EngineModule;
  engine = new Embedder(bytesOf(files.weights), bytesOf(files.tokenizer), bytesOf(files.config), maxTokens);
  return undefined;
}

function readFile(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
