import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { onTestFinished } from 'vitest';
import { measureWait } from '../support/work.ts';

export const BRIDGE = 'integrations/stdio-bridge/helmdeck-memory-mcp.mjs';

interface Said {
  readonly id?: number | string | null;
  readonly method?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface RunningBridge {
  readonly child: ChildProcess;
  readonly messages: readonly Said[];
  readonly stderr: () => string;
  write(text: string | Buffer): void;
  /** Sends a request and waits for the response. */
  request(method: string, params?: object): Promise<Said>;
  /** Waits for a matching message. */
  waitFor(fits: (said: Said) => boolean): Promise<Said>;
  /** Closes stdin. Returns the exit status and the time until the exit in ms. */
  closeStdin(): Promise<{ code: number | null; ms: number }>;
}

/** Starts the bridge as a client does. Output that is not JSON fails the test. */
export function startBridge(environment: Record<string, string>, ...args: string[]): RunningBridge {
  const child = spawn(process.execPath, [BRIDGE, ...args], { env: environment, stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said: Said[] = [];
  const hearers = new Set<() => void>();
  let rest = '';
  let complained = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    said.push(...lines.map((line) => JSON.parse(line) as Said));
    for (const hear of hearers) hear();
  });
  child.stderr.on('data', (chunk: Buffer) => (complained += chunk.toString()));
  child.stdin.on('error', () => undefined);
  let asked = 0;
  const until: RunningBridge['waitFor'] = (fits) => {
    const { promise, resolve } = Promise.withResolvers<Said>();
    const hear = (): void => {
      const found = said.find(fits);
      if (found) resolve(found);
    };
    hearers.add(hear);
    hear();
    return promise.finally(() => hearers.delete(hear));
  };
  return {
    child,
    messages: said,
    stderr: () => complained,
    write: (text) => void child.stdin.write(text),
    request(method, params) {
      asked += 1;
      const id = asked;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return until((one) => one.id === id);
    },
    waitFor: until,
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
