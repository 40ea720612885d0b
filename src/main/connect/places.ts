import { readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { HostMachine } from '../config/config.ts';

/** A folder named by an environment variable. Ignores a relative path, which the client would resolve differently. */
export function folderFromEnvironment({ environment }: HostMachine, name: string): string | undefined {
  const folder = environment[name] ?? '';
  return isAbsolute(folder) ? folder : undefined;
}

/** The folder in which desktop programs store a user's data. */
export function applicationData(machine: HostMachine): string {
  const { environment, platform } = machine;
  const home = machine.home();
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return environment['APPDATA'] ?? join(home, 'AppData', 'Roaming');
  const config = environment['XDG_CONFIG_HOME'] ?? '';
  return isAbsolute(config) ? config : join(home, '.config');
}

/** The names in a folder; empty if the folder cannot be read. */
export function namesInFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
