import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import { withCliCommand } from '../../contract/cli-command.ts';
import { Failure } from '../../contract/failure.ts';
import { OutputClosed } from './errors.ts';

export interface StandardStreams {
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable & { isTTY?: boolean };
  readonly stderr: Writable & { isTTY?: boolean };
}

const DIM = '\u001b[2m';
const PLAIN = '\u001b[0m';
const CLEAR_LINE = '\r\u001b[K';

export class Terminal {
  readonly #streams: StandardStreams;
  readonly #colours: boolean;
  readonly #interrupted: AbortSignal;
  #outputError: Error | undefined;

  constructor(streams: StandardStreams, { noColour, interrupted }: { noColour: boolean; interrupted: AbortSignal }) {
    this.#streams = streams;
    this.#colours = streams.stdout.isTTY === true && !noColour;
    this.#interrupted = interrupted;
    // Listen for errors, because an 'error' event without a listener would crash the process.
    streams.stdout.on('error', (error) => (this.#outputError = error));
    streams.stderr.on('error', () => undefined);
  }

  /** False if standard output goes to a pipe or a file. */
  get outputIsTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Whether the user can see a question and answer it. */
  get canAsk(): boolean {
    return this.#streams.stdin.isTTY === true && this.#streams.stderr.isTTY === true;
  }

  get inputIsTerminal(): boolean {
    return this.#streams.stdin.isTTY === true;
  }

  dim(text: string): string {
    return this.#colours ? DIM + text + PLAIN : text;
  }

  /** Prints lines on standard output. Resolves when the lines are written, so that a long result does not fill the RAM. */
  async print(...lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#streams.stdout.write(`${lines.join('\n')}\n`, (error) => {
      this.#outputError ??= error ?? undefined;
      resolve();
    });
    await promise;
    if (!this.#outputError) return;
    if ('code' in this.#outputError && this.#outputError.code === 'EPIPE') throw new OutputClosed();
    throw new Failure('disk_full', 'The output could not be written. Check the disk that the output goes to.', {
      cause: this.#outputError,
    });
  }

  /** Prints messages that are not part of the result, such as hints and errors. */
  printToStderr(...lines: readonly string[]): void {
    if (lines.length > 0) this.#streams.stderr.write(`${lines.map(withCliCommand).join('\n')}\n`);
  }

  async flush(): Promise<void> {
    const { stdout, stderr } = this.#streams;
    await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
  }

  /** Asks a question and reads one line. Returns an empty string if the input is closed. */
  async ask(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    // With `terminal: false`, Ctrl+C still sends SIGINT to this process.
    const reader = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      const closed = once(reader, 'close', { signal: this.#interrupted }).then(() => '');
      closed.catch(() => undefined);
      return await Promise.race([reader.question(question, { signal: this.#interrupted }), closed]);
    } finally {
      reader.close();
    }
  }

  /** Asks a question and reads one line, without showing what the user types. */
  async askHidden(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    stderr.write(question);
    // With `terminal: true`, the reader echoes the input. Discard the reader's output to hide the echo.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const reader = createInterface({ input: stdin, output: nowhere, terminal: true });
    // The reader consumes Ctrl+C. Send SIGINT instead, so that the signal handlers cancel the command.
    reader.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    const signal = this.#interrupted;
    try {
      const line = once(reader, 'line', { signal }).then(([text]) => String(text));
      const closed = once(reader, 'close', { signal }).then(() => '');
      closed.catch(() => undefined);
      return await Promise.race([line, closed]);
    } finally {
      reader.close();
      stderr.write('\n');
    }
  }

  /** Reads all of standard input. Returns undefined if the input is longer than `most` bytes. */
  async read(most: number): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.input()) {
      bytes += chunk.length;
      if (bytes > most) return undefined;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  /** Reads all of standard input as text. Returns an empty string if the input is longer than `most` bytes. */
  async readText(most: number): Promise<string> {
    return (await this.read(most))?.toString() ?? '';
  }

  async *input(): AsyncGenerator<Buffer> {
    for await (const chunk of addAbortSignal(this.#interrupted, this.#streams.stdin))
      yield Buffer.from(chunk as Uint8Array | string);
  }

  /** Shows a progress line on the terminal, until the caller disposes the returned object. */
  showProgress(text: string): Disposable & { update(text: string): void } {
    const { stderr } = this.#streams;
    let shown = '';
    const show = (now: string): void => {
      if (stderr.isTTY && now !== shown) stderr.write(CLEAR_LINE + now);
      shown = now;
    };
    show(text);
    return { update: show, [Symbol.dispose]: () => show('') };
  }
}
