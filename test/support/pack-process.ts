import { execFileSync } from 'node:child_process';

interface Row {
  readonly pid: string;
  readonly parent: string;
  readonly command: string;
}

/** Process ids of pack processes below another process, without guard shells and sandbox programs. */
export function packProcesses(ancestor = process.pid): string[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,command='], { encoding: 'utf8', maxBuffer: 16 << 20 })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid = '', parent = '', command = '']): Row => ({ pid, parent, command }));
  const below = new Set([String(ancestor)]);
  for (let before = 0; before < below.size;) {
    before = below.size;
    for (const { pid, parent } of rows) if (below.has(parent)) below.add(pid);
  }
  return rows
    .filter(({ pid, command }) => below.has(pid) && command.startsWith(process.execPath) && /own-pack/.test(command))
    .map(({ pid }) => pid);
}
