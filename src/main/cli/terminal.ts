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

/** Input and output of the command line. */
export class Terminal {
  readonly #streams: StandardStreams;
  readonly #colours: boolean;
  readonly #interrupted: AbortSignal;
  #gone: Error | undefined;

  constructor(streams: StandardStreams, { noColour, interrupted }: { noColour: boolean; interrupted: AbortSignal }) {
    this.#streams = streams;
    this.#colours = streams.stdout.isTTY === true && !noColour;
    this.#interrupted = interrupted;
    // Without a listener, Node would exit with an uncaught error.
    streams.stdout.on('error', (error) => (this.#gone = error));
    streams.stderr.on('error', () => undefined);
  }

  /** False if output goes to a pipe or a file. */
  get outputIsTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Whether a question can be shown and answered. */
  get canAsk(): boolean {
    return this.#streams.stdin.isTTY === true && this.#streams.stderr.isTTY === true;
  }

  get inputIsTerminal(): boolean {
    return this.#streams.stdin.isTTY === true;
  }

  dim(text: string): string {
    return this.#colours ? DIM + text + PLAIN : text;
  }

  /** Resolves when the output has accepted the lines, so that a long result does not build up in RAM. */
  async print(...lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#streams.stdout.write(`${lines.join('\n')}\n`, (error) => {
      this.#gone ??= error ?? undefined;
      resolve();
    });
    await promise;
    if (!this.#gone) return;
    if ('code' in this.#gone && this.#gone.code === 'EPIPE') throw new OutputClosed();
    throw new Failure('disk_full', 'The output could not be written. Check the disk that it goes to.', { cause: this.#gone });
  }

  /** Messages that are not part of the result, such as hints and errors. */
  printToStderr(...lines: readonly string[]): void {
    if (lines.length > 0) this.#streams.stderr.write(`${lines.map(withCliCommand).join('\n')}\n`);
  }

  /** Waits until all output is written. */
  async flush(): Promise<void> {
    const { stdout, stderr } = this.#streams;
    await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
  }

  /** Reads one line; empty if the terminal is closed. */
  async ask(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    // `terminal: false` leaves Ctrl+C a signal.
    const reader = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      const closed = once(reader, 'close', { signal: this.#interrupted }).then(() => '');
      closed.catch(() => undefined);
      return await Promise.race([reader.question(question, { signal: this.#interrupted }), closed]);
    } finally {
      reader.close();
    }
  }

  /** Reads one line without showing it. */
  async askHidden(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    stderr.write(question);
    // With `terminal: true` the reader echoes the input itself, and its output is discarded.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const reader = createInterface({ input: stdin, output: nowhere, terminal: true });
    // This reader consumes Ctrl+C, so raise the signal for the handlers.
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

  /** All of standard input, or undefined if it is longer than `most` bytes. */
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

  /** All of standard input as text; empty if it is longer than `most` bytes. */
  async readText(most: number): Promise<string> {
    return (await this.read(most))?.toString() ?? '';
  }

  async *input(): AsyncGenerator<Buffer> {
    for await (const chunk of addAbortSignal(this.#interrupted, this.#streams.stdin))
      yield Buffer.from(chunk as Uint8Array | string);
  }

  /** Shows a progress line on a terminal until it is disposed. */
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
