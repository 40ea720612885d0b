import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import { withCliCommand } from '../../contract/cli-command.ts';
import { Failure } from '../../contract/failure.ts';

export interface StandardStreams {
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable & { isTTY?: boolean };
  readonly stderr: Writable & { isTTY?: boolean };
}

/** Whoever read our output has gone, as `head` does when it has seen enough. That is no failure. */
export class OutputClosed extends Error {}

const DIM = '\u001b[2m';
const PLAIN = '\u001b[0m';
const CLEAR_LINE = '\r\u001b[K';

/** What a person or a script sees of us, and what we read from them. */
export class Terminal {
  readonly #streams: StandardStreams;
  readonly #colours: boolean;
  readonly #interrupted: AbortSignal;
  #gone: Error | undefined;

  constructor(streams: StandardStreams, { noColour, interrupted }: { noColour: boolean; interrupted: AbortSignal }) {
    this.#streams = streams;
    this.#colours = streams.stdout.isTTY === true && !noColour;
    this.#interrupted = interrupted;
    // Without a listener Node would end the program where it stands.
    streams.stdout.on('error', (error) => (this.#gone = error));
    streams.stderr.on('error', () => undefined);
  }

  /** Whether a person sees what we say; else a pipe or a file takes it. */
  get outputIsTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Whether there is a person to ask. */
  get canAsk(): boolean {
    return this.#streams.stdin.isTTY === true && this.#streams.stderr.isTTY === true;
  }

  get inputIsTerminal(): boolean {
    return this.#streams.stdin.isTTY === true;
  }

  dim(text: string): string {
    return this.#colours ? DIM + text + PLAIN : text;
  }

  /** Fulfils when a pipe has taken it: a long answer never gathers in memory. */
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
    throw new Failure('disk_full', 'The answer could not be written; check the disk that it goes to.', { cause: this.#gone });
  }

  /** Beside the answer: what a pipe must not swallow. */
  printToStderr(...lines: readonly string[]): void {
    if (lines.length > 0) this.#streams.stderr.write(`${lines.map(withCliCommand).join('\n')}\n`);
  }

  /** Until all that was said has left us. */
  async flush(): Promise<void> {
    const { stdout, stderr } = this.#streams;
    await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
  }

  /** One line; nothing when the terminal is closed instead. */
  async ask(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    // As a plain line reader, so that Ctrl+C stays a signal.
    const reader = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      const closed = once(reader, 'close', { signal: this.#interrupted }).then(() => '');
      closed.catch(() => undefined);
      return await Promise.race([reader.question(question, { signal: this.#interrupted }), closed]);
    } finally {
      reader.close();
    }
  }

  /** The same without showing what is typed. */
  async askHidden(question: string): Promise<string> {
    const { stdin, stderr } = this.#streams;
    stderr.write(question);
    // Only a line reader that draws the line itself keeps the terminal from showing it; what it draws goes nowhere.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const reader = createInterface({ input: stdin, output: nowhere, terminal: true });
    // It takes Ctrl+C for itself; whoever waits for the signal must hear of it all the same.
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

  /** Whatever comes in, to its end. Undefined when it is more than `most` bytes. */
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

  async *input(): AsyncGenerator<Buffer> {
    for await (const chunk of addAbortSignal(this.#interrupted, this.#streams.stdin))
      yield Buffer.from(chunk as Uint8Array | string);
  }

  /** Says that something goes on, where a person would wonder. It is gone again when it has ended. */
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
