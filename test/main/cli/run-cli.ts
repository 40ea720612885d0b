import { Readable, Writable } from 'node:stream';
import type { CommandLineHost } from '../../../src/main/cli/command-context.ts';
import { runCommandLine } from '../../../src/main/cli/run.ts';
import { A_KEY } from '../../support/store.ts';

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface RunOptions {
  readonly folder?: string;
  readonly environment?: Record<string, string | undefined>;
  /** Standard input; on a terminal, the typed text. */
  readonly input?: string | Buffer | AsyncIterable<Buffer>;
  /** Whether the streams are a terminal. */
  readonly terminal?: boolean;
  readonly now?: number;
  readonly interrupted?: AbortSignal;
  /** Called with the output on standard error as it is written. */
  readonly onStderr?: (err: string) => void;
}

/** Runs a command line in this process. By default, the key is in the environment. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
  const {
    folder,
    environment = { HELMDECK_MEMORY_KEY: A_KEY },
    input = '',
    terminal = false,
    now,
    interrupted,
    onStderr,
  } = options;
  const [out, err] = [new FakeOutput(terminal), new FakeOutput(terminal, onStderr)];
  const stdin = typeof input === 'string' || Buffer.isBuffer(input) ? Readable.from([Buffer.from(input)]) : Readable.from(input);
  const world: CommandLineHost = {
    environment: { HELMDECK_MEANING: 'off', ...(folder !== undefined && { HELMDECK_DATA_DIR: folder }), ...environment },
    platform: process.platform,
    home: () => '/nowhere',
    stdin: Object.assign(stdin, { isTTY: terminal }),
    stdout: out,
    stderr: err,
    version: '1.2.3',
    updates: '',
    now: () => now ?? Date.now(),
    interrupted: interrupted ?? new AbortController().signal,
  };
  const code = await runCommandLine(args, world);
  return { code, out: out.text, err: err.text };
}

class FakeOutput extends Writable {
  readonly isTTY: boolean;
  text = '';

  readonly #onStderr: (text: string) => void;

  constructor(isTTY: boolean, onStderr: (text: string) => void = () => undefined) {
    super();
    this.isTTY = isTTY;
    this.#onStderr = onStderr;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    this.#onStderr(this.text);
    done();
  }
}
