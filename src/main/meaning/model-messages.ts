/** A file of the model, which is loaded only if it has this hash. */
export interface PinnedFile {
  /** Name for a message to the owner, without the path. */
  readonly name: string;
  readonly path: string;
  readonly sha256: string;
}

export interface ModelFiles {
  /** The CommonJS module that wraps the WebAssembly file. */
  readonly engine: PinnedFile;
  readonly wasm: PinnedFile;
  readonly weights: PinnedFile;
  readonly tokenizer: PinnedFile;
  readonly config: PinnedFile;
}

/** The first message loads the model. Every other message is a text to embed. */
export type ToModel = { readonly files: ModelFiles; readonly maxTokens: number } | { readonly text: string };

export type FromModel =
  | { readonly is: 'loaded' }
  | { readonly is: 'damaged'; readonly file: string }
  | { readonly is: 'vector'; readonly vector: Float32Array };

/** A started process. Sending to a process that has exited has no effect. */
export interface ModelProcess {
  send(message: ToModel): void;
  kill(): void;
}

/** Starts the process at `path`. Calls `onExit` once, however the process ends. Throws if the process cannot be started. */
export type LaunchModel = (
  path: string,
  files: ModelFiles,
  on: { readonly message: (message: FromModel) => void; readonly exit: () => void },
) => ModelProcess;
