import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join, parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostMachine } from '../config/config.ts';

export interface OllamaProcess {
  readonly pid: number;
  /** Resolves when the process has exited, for any reason. */
  readonly ended: Promise<void>;
  /** Signals Ollama to stop, and kills it after the grace period. Resolves when Ollama and its child processes have exited. */
  stop(): Promise<void>;
}

interface Spec {
  readonly path: string;
  readonly port: number;
  /** A separate folder for everything that Ollama stores, including models. */
  readonly home: string;
  readonly environment: HostMachine['environment'];
  /** Called with the process's output. The process is killed if this function returns false. */
  readonly onOutput: (chunk: Buffer) => boolean;
  /** Milliseconds that the process has to stop before it is killed. */
  readonly graceMs: number;
}

const MARK = 'HELMDECK_SIDECAR';
/** Time that the guarding shell has to find and kill the child processes that left the group. */
const MAX_GUARD_MS = 500;

/**
 * Shell script that starts Ollama, and kills it with its child processes when the program exits for any reason. A shell in the
 * same process group waits on a pipe that only the program holds open. When the pipe closes, the shell kills processes with
 * `MARK` that left the group (Linux only), and then the group. On Windows, Node's job object does the same.
 */
const GUARDED = `ulimit -c 0
(trap '' HUP INT TERM; read -r _ <&3
for e in $(grep -lzxF "${MARK}=$1" /proc/[0-9]*/environ); do e=\${e#/proc/}; kill -9 "\${e%/environ}"; done
kill -9 0) >/dev/null 2>&1 &
${MARK}=$1; export ${MARK}; shift; exec "$@" 3<&-`;

export function startOllamaProcess({ path, port, home, environment, onOutput, graceMs }: Spec): OllamaProcess {
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
    // Start a new process group, so that the whole group can be killed.
    detached: !windows,
    windowsHide: true,
  });
  const { pid = 0 } = child;
  const group = windows ? 0 : pid;
  const [, , output, lifeline] = child.stdio as unknown as [unknown, unknown, Duplex, Duplex];
  lifeline.on('error', () => undefined);
  output.on('error', () => undefined);
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
  output.on('data', (chunk: Buffer) => {
    if (onOutput(chunk)) return;
    // Stop reading, so that further output is not buffered.
    output.destroy();
    signal('SIGKILL');
  });
  const guardEnded = new Promise<void>((resolve) => void lifeline.resume().once('close', resolve));
  const rest = async (): Promise<void> => {
    await exited;
    // The shell that waits on the pipe kills the rest of the group and itself, which closes the pipe.
    lifeline.end();
    if (!windows) await Promise.race([guardEnded, wait(MAX_GUARD_MS, undefined, { ref: false })]);
    lifeline.destroy();
    // If the shell was killed first, kill the group here.
    if (hasMembers(group)) signal('SIGKILL');
    // Killed processes exit soon. Do not wait longer: a process that has exited counts until init takes its exit status.
    for (let tries = 0; tries < 5 && hasMembers(group); tries += 1) await wait(10);
    output.destroy();
  };
  const ended = rest();
  return {
    pid,
    ended,
    async stop() {
      signal('SIGTERM');
      const killTimer = new AbortController();
      void wait(graceMs, undefined, { signal: killTimer.signal }).then(
        () => signal('SIGKILL'),
        () => undefined,
      );
      await exited;
      killTimer.abort();
      await ended;
    },
  };
}

/** True if the process group still contains a process. */
function hasMembers(group: number): boolean {
  try {
    return group !== 0 && process.kill(-group, 0);
  } catch {
    return false;
  }
}

/** Variables of our environment that Ollama receives, so that it can download models behind a proxy. */
const INHERITED = ['HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy', 'SSL_CERT_FILE', 'TMPDIR', 'SystemRoot', 'TEMP', 'TMP'];

interface EnvironmentOptions {
  readonly environment: HostMachine['environment'];
  readonly home: string;
  readonly port: number;
}

/**
 * Returns the environment of the Ollama process. Copies only listed variables, because our environment holds keys, and an
 * inherited OLLAMA_* setting could expose Ollama to other origins or addresses.
 */
function environmentOf({ environment, home, port }: EnvironmentOptions): Record<string, string> {
  const passed = INHERITED.flatMap((name) => {
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
    // Never send text to Ollama's cloud, even if the model's name requests a cloud model.
    OLLAMA_NO_CLOUD: '1',
    // Unload the idle model to free its memory.
    OLLAMA_KEEP_ALIVE: '5m',
    OLLAMA_MAX_LOADED_MODELS: '1',
    OLLAMA_NUM_PARALLEL: '1',
  };
}
