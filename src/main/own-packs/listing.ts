import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { writePrivately } from '../../core/files.ts';
import { prepareFolder } from '../../core/prepare-folder.ts';
import { dataFolderOf, type Machine, packsIn } from '../config.ts';
import { IN_THE_FOLDER, NAMED, readSettings } from '../settings-file.ts';

/**
 * Writes the list of packs into the configuration file of the data folder; what else stands there stays, in its order. Takes
 * effect at the next start.
 */
export function changePacks(machine: Machine, change: (names: readonly string[]) => readonly string[]): readonly string[] {
  const elsewhere = ['HELMDECK_PACKS', NAMED].find((name) => machine.environment[name] !== undefined);
  if (elsewhere !== undefined) {
    throw new Failure(
      'invalid_input',
      `${elsewhere} is set in the environment, so HELMDECK_PACKS is to be changed there by hand.`,
    );
  }
  const { file, environment } = readSettings(machine);
  const before = file === undefined ? {} : (JSON.parse(readFileSync(file, 'utf8')) as object);
  const names = change(packsIn(environment));
  const folder = dataFolderOf(machine);
  prepareFolder(folder);
  writePrivately(join(folder, IN_THE_FOLDER), `${JSON.stringify({ ...before, HELMDECK_PACKS: names }, null, 2)}\n`);
  return names;
}
