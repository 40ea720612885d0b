import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How the stand-in goes about its work; it looks anew at each question. */
export interface Behaviour {
  readonly version: string;
  /** What it has without having fetched it. */
  readonly models: readonly string[];
  readonly fault?:
    | 'crashes'
    | 'hangs'
    | '500'
    | 'other-dimension'
    | 'forgets'
    | 'floods'
    | 'deaf'
    | 'forks'
    | 'no-space'
    | 'stays';
  /** What a flood says again and again. */
  readonly line?: string;
  /** Without the small model, whose first vector takes a while. */
  readonly quick?: boolean;
  /** Between two steps of a fetch. */
  readonly pullMs?: number;
  /** Before each answer that holds vectors. */
  readonly slowMs?: number;
}

const WELL: Behaviour = { version: '0.35.2', models: ['all-minilm'], quick: true };

export interface StandIn {
  /** The program, as an installer would put it there. */
  readonly path: string;
  behave(behaviour: Partial<Behaviour>): void;
  /** What it was asked, in order. */
  requests(): string[];
  /** Each of its processes so far. */
  pids(): number[];
  lines(file: string): string[];
  environment(): Record<string, string>;
}

/** A program that is to its caller what Ollama is, in a folder of its own. */
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

/** A script that anybody could have put there. */
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
  // One that has ended and was not asked after yet is no process any more.
  return process.platform !== 'linux' || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
