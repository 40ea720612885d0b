import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { onTestFinished } from 'vitest';
import { measureWait } from '../support/work.ts';

export const BRIDGE = 'integrations/stdio-bridge/helmdeck-memory-mcp.mjs';

interface Message {
  readonly id?: number | string | null;
  readonly method?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface RunningBridge {
  readonly child: ChildProcess;
  readonly messages: readonly Message[];
  readonly stderr: () => string;
  write(text: string | Buffer): void;
  /** Sends a request and waits for the response. */
  request(method: string, params?: object): Promise<Message>;
  /** Waits for a matching message. */
  waitFor(fits: (message: Message) => boolean): Promise<Message>;
  /** Closes stdin. Returns the exit status and the time until the exit in ms. */
  closeStdin(): Promise<{ code: number | null; ms: number }>;
}

/** Starts the bridge as a client does. Output that is not JSON fails the test. */
export function startBridge(environment: Record<string, string>, ...args: string[]): RunningBridge {
  const child = spawn(process.execPath, [BRIDGE, ...args], { env: environment, stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const messages: Message[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    messages.push(...lines.map((line) => JSON.parse(line) as Message));
    for (const listener of listeners) listener();
  });
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  child.stdin.on('error', () => undefined);
  let lastId = 0;
  const waitFor: RunningBridge['waitFor'] = (fits) => {
    const { promise, resolve } = Promise.withResolvers<Message>();
    const listener = (): void => {
      const found = messages.find(fits);
      if (found) resolve(found);
    };
    listeners.add(listener);
    listener();
    return promise.finally(() => listeners.delete(listener));
  };
  return {
    child,
    messages,
    stderr: () => errors,
    write: (text) => void child.stdin.write(text),
    request(method, params) {
      lastId += 1;
      const id = lastId;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return waitFor((one) => one.id === id);
    },
    waitFor,
    async closeStdin() {
      let code: number | null = null;
      const ms = await measureWait(async () => {
        child.stdin.end();
        [code] = (await once(child, 'close')) as [number | null];
      });
      return { code, ms };
    },
  };
}

export const INITIALIZE_PARAMS = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a test', version: '1' },
};

export function writePrivate(path: string, text: string, mode = 0o600): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
  return path;
}
