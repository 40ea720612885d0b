import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { writePrivateFile } from '../../core/file/files.ts';
import { prepareFolder } from '../../core/file/prepare-folder.ts';
import { resolveDataFolder, type HostMachine } from '../config/config.ts';
import { CONFIG_FILE, CONFIG_PATH_SETTING, readSettings } from '../config/settings-file.ts';
import { readSetting } from '../config/settings-table.ts';

/**
 * Changes the list of enabled packs in the configuration file in the data folder. Leaves the other settings unchanged. Takes
 * effect the next time the program starts.
 */
export function updatePackList(machine: HostMachine, change: (names: readonly string[]) => readonly string[]): readonly string[] {
  const elsewhere = ['HELMDECK_PACKS', CONFIG_PATH_SETTING].find((name) => machine.environment[name] !== undefined);
  if (elsewhere !== undefined) {
    throw new Failure('invalid_input', `${elsewhere} is set in the environment, so change HELMDECK_PACKS there.`);
  }
  const { file, environment } = readSettings(machine);
  const before = file === undefined ? {} : (JSON.parse(readFileSync(file, 'utf8')) as object);
  const names = change(readSetting({ ...machine, environment }, 'HELMDECK_PACKS') ?? []);
  const folder = resolveDataFolder(machine);
  prepareFolder(folder);
  writePrivateFile(join(folder, CONFIG_FILE), `${JSON.stringify({ ...before, HELMDECK_PACKS: names }, null, 2)}\n`);
  return names;
}
