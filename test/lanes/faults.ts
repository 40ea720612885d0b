import { backupKilled, backupSurvives } from './faults/backup.ts';
import { diskFails, flushesCounted } from './faults/failing-disk.ts';
import { fullDisk } from './faults/full-disk.ts';
import { killed } from './faults/kill.ts';
import { type Check, runLane } from './faults/lane.ts';
import { oneHolder } from './faults/lock.ts';
import { migrationKilled, migrationKilledInside } from './faults/migration.ts';
import { powerCut, powerCutAfterFailedFlush, powerCutIsReal } from './faults/power-cut.ts';
import { rotationKilled, rotationKilledAtItsEnds } from './faults/rotation.ts';
import { upkeepKilled } from './faults/upkeep.ts';

/** `faults.ts [torture] [part of a name]`. FAULTS_SEED repeats a run. */
const [, , size = 'faults', part = ''] = process.argv;
const seed = Number(process.env['FAULTS_SEED'] ?? Date.now() % 1_000_000);

const checks: readonly Check[] = [
  killed,
  powerCut,
  powerCutIsReal,
  powerCutAfterFailedFlush,
  flushesCounted,
  diskFails,
  rotationKilledAtItsEnds,
  rotationKilled,
  fullDisk,
  migrationKilled,
  migrationKilledInside,
  oneHolder,
  backupKilled,
  backupSurvives,
  upkeepKilled,
];

console.log(`seed ${seed}; repeat this run with FAULTS_SEED=${seed}`);
const fine = await runLane(
  checks.filter(({ name }) => name.includes(part)),
  { large: size === 'torture', seed },
);
process.exitCode = fine ? 0 : 1;
