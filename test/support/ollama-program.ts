import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The stand-in's behavior, read again for each request. */
export interface Behaviour {
  readonly version: string;
  /** Models installed from the start. */
  readonly models: readonly string[];
  readonly fault?:
    | 'crashes'
    | 'hangs'
    | '500'
    | 'other-dimension'
    | 'long-vectors'
    | 'forgets'
    | 'floods'
    | 'deaf'
    | 'forks'
    | 'no-space'
    | 'stays';
  /** The line repeated by a flood. */
  readonly line?: string;
  /** Returns synthetic vectors instead of loading the small model, whose first vector is slow. */
  readonly quick?: boolean;
  /** The digest of every installed model. */
  readonly digest?: string;
  /** Delay between two progress steps of a pull. */
  readonly pullMs?: number;
  /** Delay before each response with vectors. */
  readonly slowMs?: number;
}

const WELL: Behaviour = { version: '0.35.2', models: ['all-minilm'], quick: true };

export interface StandIn {
  /** The program's path, as an installer would create it. */
  readonly path: string;
  behave(behaviour: Partial<Behaviour>): void;
  /** The requests received, in order. */
  requests(): string[];
  /** The process ids of all its processes so far. */
  pids(): number[];
  lines(file: string): string[];
  environment(): Record<string, string>;
}

/** Installs a program that behaves like Ollama in its own folder. */
export function putStandIn(folder: string, behaviour: Partial<Behaviour> = {}): StandIn {
  const path = join(folder, 'bin', 'ollama');
  const behave = (next: Partial<Behaviour>): void =>
    writeFileSync(join(folder, 'behaviour.json'), JSON.stringify({ ...WELL, ...next }));
  behave(behaviour);
  writeProgram(path, `exec '${process.execPath}' '${join(import.meta.dirname, 'ollama-stand-in.ts')}' '${folder}' "$@"`);
  const lines = (file: string): string[] => {
    const from = join(folder, file);
    return existsSync(from) ? readFileSync(from, 'utf8').trim().split('\n') : [];
  };
  return {
    path,
    behave,
    lines,
    requests: () => lines('requests'),
    pids: () => lines('pids').map(Number),
    environment: () => JSON.parse(lines('environment.json').join('')) as Record<string, string>,
  };
}

/** Writes an executable shell script. */
export function writeProgram(path: string, script: string): void {
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie process has exited.
  return process.platform !== 'linux' || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
