import { writeSync } from 'node:fs';
import type { Line } from './ops.ts';
import { backUpForEver } from './tasks/backing-up.ts';
import { fillTheDisk } from './tasks/full-disk.ts';
import { holdTheFolder } from './tasks/holding.ts';
import { migrateAndDie } from './tasks/migrating.ts';
import { fillForRotation, rotate } from './tasks/rotating.ts';
import { putInSequence, writeAmidFaults, writeForEver, writeWithoutFlushing } from './tasks/writing.ts';

/** The worker's way to its parent. */
const PIPE = 3;

/** Returns when the line is out of this process: whatever happens to it now, the parent reads it. */
export type Tell = (line: Line) => void;

const tell: Tell = (line) => void writeSync(PIPE, `${JSON.stringify(line)}\n`);

const tasks: Readonly<Record<string, (given: never, tell: Tell) => Promise<void>>> = {
  'write for ever': writeForEver,
  'write without flushing': writeWithoutFlushing,
  'write amid faults': writeAmidFaults,
  'put in sequence': putInSequence,
  'fill the disk': fillTheDisk,
  'fill for rotation': fillForRotation,
  rotate,
  'migrate and die': migrateAndDie,
  'hold the folder': holdTheFolder,
  'back up for ever': backUpForEver,
};

const [, , task = '', given = '{}'] = process.argv;
const run = tasks[task];
if (!run) throw new Error(`There is no task "${task}".`);
await run(JSON.parse(given) as never, tell);
