import { Readable, Writable } from 'node:stream';
import type { CommandLineHost } from '../../../src/main/cli/command-context.ts';
import { runCommandLine } from '../../../src/main/cli/run.ts';
import { A_KEY } from '../../support/store.ts';

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Circumstances {
  readonly folder?: string;
  readonly environment?: Record<string, string>;
  /** What comes in; on a terminal, what is typed. */
  readonly input?: string | Buffer | AsyncIterable<Buffer>;
  /** Whether a person sits there. */
  readonly terminal?: boolean;
  readonly now?: number;
  readonly interrupted?: AbortSignal;
  /** Hears what is said beside the answer, while it goes on. */
  readonly hear?: (err: string) => void;
}

/** The command line in this process, from what was typed to its exit code. Its key is in the environment unless told. */
export async function runCli(args: readonly string[], circumstances: Circumstances = {}): Promise<CommandResult> {
  const {
    folder,
    environment = { HELMDECK_MEMORY_KEY: A_KEY },
    input = '',
    terminal = false,
    now,
    interrupted,
    hear,
  } = circumstances;
  const [out, err] = [new Paper(terminal), new Paper(terminal, hear)];
  const stdin = typeof input === 'string' || Buffer.isBuffer(input) ? Readable.from([Buffer.from(input)]) : Readable.from(input);
  const world: CommandLineHost = {
    environment: { ...(folder !== undefined && { HELMDECK_DATA_DIR: folder }), ...environment },
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

class Paper extends Writable {
  readonly isTTY: boolean;
  text = '';

  readonly #hear: (text: string) => void;

  constructor(isTTY: boolean, hear: (text: string) => void = () => undefined) {
    super();
    this.isTTY = isTTY;
    this.#hear = hear;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    this.#hear(this.text);
    done();
  }
}
