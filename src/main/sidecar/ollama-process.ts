import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join, parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostMachine } from '../config/config.ts';

/** An Ollama that we started. */
export interface OllamaProcess {
  readonly pid: number;
  /** Fulfils when it has ended, however. */
  readonly ended: Promise<void>;
  /** Ends it, politely and then at once, with all that it started. Fulfils when nothing of it is left. */
  stop(): Promise<void>;
}

interface Spec {
  readonly path: string;
  readonly port: number;
  /** Its own: what it keeps, models included, lies in here. */
  readonly home: string;
  readonly environment: HostMachine['environment'];
  /** Hears what it says; false ends it. */
  readonly hear: (chunk: Buffer) => boolean;
  /** How long it may take to end by itself. */
  readonly graceMs: number;
}

const MARK = 'HELMDECK_SIDECAR';

/**
 * Nothing of it may be left when the program is gone, however that went. A shell that waits shares its group: it reads from a pipe
 * that only the program holds, which closes with it. It ends first what left the group and still bears the mark that Ollama
 * was started with, which only Linux tells, and then the group. Windows ends what a program started together with it.
 */
const GUARDED = `ulimit -c 0
(trap '' HUP INT TERM; read -r _ <&3
for e in $(grep -lzxF "${MARK}=$1" /proc/[0-9]*/environ); do e=\${e#/proc/}; kill -9 "\${e%/environ}"; done
kill -9 0) >/dev/null 2>&1 &
${MARK}=$1; export ${MARK}; shift; exec "$@" 3<&-`;

export function startOllamaProcess({ path, port, home, environment, hear, graceMs }: Spec): OllamaProcess {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const windows = process.platform === 'win32';
  const mark = randomBytes(16).toString('hex');
  const [program, ...args]: readonly [string, ...string[]] = windows
    ? [path, 'serve']
    : ['/bin/sh', '-c', GUARDED, 'sh', mark, path, 'serve'];
  const child = spawn(program, args, {
    env: environmentOf({ environment, home, port }),
    cwd: parse(process.execPath).root,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    // A group of its own, which is ended as one.
    detached: !windows,
    windowsHide: true,
  });
  const { pid = 0 } = child;
  const group = windows ? 0 : pid;
  const [, , said, lifeline] = child.stdio as unknown as [unknown, unknown, Duplex, Duplex];
  lifeline.on('error', () => undefined);
  said.on('error', () => undefined);
  const exited = new Promise<void>((resolve) => void child.once('exit', () => resolve()).once('error', () => resolve()));
  const signal = (name: NodeJS.Signals): boolean => {
    if (pid === 0) return false;
    try {
      if (windows) return child.kill(name);
      process.kill(-pid, name);
      return true;
    } catch {
      return false;
    }
  };
  said.on('data', (chunk: Buffer) => {
    if (hear(chunk)) return;
    // What nobody hears any more must not be gathered either.
    said.destroy();
    signal('SIGKILL');
  });
  const rest = async (): Promise<void> => {
    await exited;
    lifeline.destroy();
    // Its guard takes the rest along; one that was ended before us leaves that to us.
    for (let tries = 0; tries < 50 && isThere(group); tries += 1) await wait(10);
    if (isThere(group)) signal('SIGKILL');
    said.destroy();
  };
  const ended = rest();
  return {
    pid,
    ended,
    async stop() {
      signal('SIGTERM');
      const tooLong = new AbortController();
      void wait(graceMs, undefined, { signal: tooLong.signal }).then(
        () => signal('SIGKILL'),
        () => undefined,
      );
      await exited;
      tooLong.abort();
      await ended;
    },
  };
}

/** Somebody of its group. */
function isThere(group: number): boolean {
  try {
    return group !== 0 && process.kill(-group, 0);
  } catch {
    return false;
  }
}

/** For its downloads, where there is no other way to the network. */
const PASSED_ON = ['HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy', 'SSL_CERT_FILE', 'TMPDIR', 'SystemRoot', 'TEMP', 'TMP'];

interface For {
  readonly environment: HostMachine['environment'];
  readonly home: string;
  readonly port: number;
}

/** All of it is listed: keys stand in our environment, and settings there could open Ollama to other origins and addresses. */
function environmentOf({ environment, home, port }: For): Record<string, string> {
  const passed = PASSED_ON.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(passed),
    ...(process.platform === 'win32' ? { USERPROFILE: home, LOCALAPPDATA: home } : { PATH: '/usr/bin:/bin' }),
    HOME: home,
    OLLAMA_MODELS: join(home, 'models'),
    OLLAMA_HOST: `127.0.0.1:${port}`,
    OLLAMA_ORIGINS: '',
    OLLAMA_NOHISTORY: '1',
    // Nothing that is embedded leaves the machine, whatever the model is called.
    OLLAMA_NO_CLOUD: '1',
    // At rest the model gives its memory back.
    OLLAMA_KEEP_ALIVE: '5m',
    OLLAMA_MAX_LOADED_MODELS: '1',
    OLLAMA_NUM_PARALLEL: '1',
  };
}
