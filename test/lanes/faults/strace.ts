import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Missing } from './lane.ts';

/** Skips the check if system calls cannot be traced on this machine. */
export function needStrace(): void {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', 'true']);
  if (error) throw new Missing('strace');
  if (status !== 0) throw new Missing(`permission for strace (${stderr.toString().trim()})`);
}

/** Counts system calls into a file. */
export const counting = (file: string, calls: readonly string[]): string[] => [
  'strace',
  '-f',
  '-c',
  '-o',
  file,
  '-e',
  `trace=${calls.join(',')}`,
];

/** Reads the counts by system call. */
export function counted(file: string): Map<string, number> {
  const rows = readFileSync(file, 'utf8').matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm);
  return new Map([...rows].filter(([, , name]) => name !== 'total').map(([, calls, name = '']) => [name, Number(calls)]));
}

/** Makes a range of one system call fail, counted from 1. */
export const failing = (call: string, error: string, from: number, to: number): string[] =>
  injecting(call, `error=${error}:when=${from}..${to}`);

/** Kills the program at one system call. */
export const killing = (call: string, at: number): string[] => injecting(call, `signal=KILL:when=${at}`);

/** strace injects only into traced calls, and injects no signal with --seccomp-bpf. */
const injecting = (call: string, what: string): string[] => {
  return ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:${what}`];
};
