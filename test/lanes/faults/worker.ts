import { writeSync } from 'node:fs';
import type { Line } from './ops.ts';
import { backUpForEver } from './tasks/backing-up.ts';
import { fillTheDisk } from './tasks/full-disk.ts';
import { holdTheFolder } from './tasks/holding.ts';
import { migrateAndDie } from './tasks/migrating.ts';
import { fillForRotation, rotate } from './tasks/rotating.ts';
import { putInSequence, writeAmidFaults, writeForEver, writeWithoutFlushing } from './tasks/writing.ts';

/** The pipe from the worker to its parent. */
const PIPE = 3;

/** Writes the line synchronously, so that the parent reads it even if this process is killed next. */
export type Tell = (line: Line) => void;

const tell: Tell = (line) => void writeSync(PIPE, `${JSON.stringify(line)}\n`);

const tasks: Readonly<Record<string, (given: never, tell: Tell) => Promise<void>>> = {
  'write until killed': writeForEver,
  'write without flushing': writeWithoutFlushing,
  'write during faults': writeAmidFaults,
  'put in sequence': putInSequence,
  'fill the disk': fillTheDisk,
  'fill for rotation': fillForRotation,
  rotate,
  'migrate and die': migrateAndDie,
  'hold the folder': holdTheFolder,
  'back up until killed': backUpForEver,
};

const [, , task = '', given = '{}'] = process.argv;
const run = tasks[task];
if (!run) throw new Error(`Unknown task "${task}".`);
await run(JSON.parse(given) as never, tell);
