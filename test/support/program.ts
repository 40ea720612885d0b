import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { TokenScope } from '../../src/contract/token.ts';
import { findOwnerClient } from '../../src/listeners/endpoint.ts';
import type { OwnerClient } from '../../src/listeners/owner-client.ts';
import { type HttpRequest, type HttpResponse, sendRequest } from './listener.ts';
import { A_KEY } from './store.ts';
import { tempFolder } from './temp-folder.ts';

export const UNBUILT = 'src/main/roots/headless.ts';
export const BUILT = 'out/main/headless.cjs';
export const SERVE = 'bin/helmdeck-memory.js serve';

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly errorOutput: string;
}

export interface StartedProgram {
  readonly pid: number | undefined;
  /** The output so far. */
  readonly output: string;
  readonly errorOutput: string;
  end(...signals: readonly NodeJS.Signals[]): Promise<Ended>;
}

/** Starts the real program with an empty home folder and no keychain. Resolves when it runs or has ended. */
export async function startProgram(environment: Record<string, string | undefined>, program = UNBUILT): Promise<StartedProgram> {
  // The program itself must restrict its files, so start it with the most permissive umask.
  const child = spawn('/bin/sh', ['-c', 'umask 0; exec "$0" "$@"', process.execPath, ...program.split(' ')], {
    env: { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_ADDR: '127.0.0.1:0', HELMDECK_MEANING: 'off', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  let errorOutput = '';
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, output, errorOutput }));
  child.stderr.on('data', (text: Buffer) => (errorOutput += text.toString()));
  const running = new Promise<void>((resolve) => {
    child.stdout.on('data', (text: Buffer) => {
      output += text.toString();
      if (/is running|^\{.*\}\n/.test(output)) resolve();
    });
  });
  await Promise.race([running, ended]);
  return {
    pid: child.pid,
    get output() {
      return output;
    },
    get errorOutput() {
      return errorOutput;
    },
    end(...signals) {
      for (const signal of signals) child.kill(signal);
      return ended;
    },
  };
}

export interface ServingProgram extends StartedProgram {
  readonly folder: string;
  readonly owner: OwnerClient;
  /** Mints a token. */
  token(subject: string, client?: string, scopes?: TokenScope[]): Promise<{ readonly id: string; readonly token: string }>;
  /** Sends a request to the REST interface, with a path below `/api/v1`. */
  send(path: string, request?: HttpRequest): Promise<HttpResponse>;
}

/** Starts the real program on a database, and connects to it as its owner. */
export async function serveDatabase(
  url: string,
  { folder = join(tempFolder(), 'data'), ...environment }: Record<string, string | undefined> = {},
): Promise<ServingProgram> {
  const started = await startProgram(
    { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_DATABASE_URL: url, ...environment },
    SERVE,
  );
  const owner = await findOwnerClient(folder);
  if (!owner) throw new Error(`The program did not start: ${started.output}${(await started.end('SIGKILL')).errorOutput}`);
  onTestFinished(() => owner[Symbol.dispose]());
  return Object.assign(started, {
    folder,
    owner,
    token: (subject: string, client = 'tester', scopes: TokenScope[] = ['memory:read', 'memory:write', 'packs:run']) =>
      owner.call('mintToken', { name: client, client, subject, scopes, quarantine: false }),
    send: (path: string, request?: HttpRequest) => sendRequest(owner.url, `/api/v1${path}`, request),
  });
}
