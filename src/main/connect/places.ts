import { readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { HostMachine } from '../config/config.ts';

/**
 * Returns the folder that an environment variable names. Ignores a relative path, because the client would resolve it
 * differently.
 */
export function folderFromEnvironment({ environment }: HostMachine, name: string): string | undefined {
  const folder = environment[name] ?? '';
  return isAbsolute(folder) ? folder : undefined;
}

/** Returns the folder in which desktop programs store a user's data. */
export function applicationData(machine: HostMachine): string {
  const { environment, platform } = machine;
  const home = machine.home();
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return environment['APPDATA'] ?? join(home, 'AppData', 'Roaming');
  const config = environment['XDG_CONFIG_HOME'] ?? '';
  return isAbsolute(config) ? config : join(home, '.config');
}

/** Returns the file names in a folder, or an empty list if the folder cannot be read. */
export function namesInFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
