import { readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { HostMachine } from '../config/config.ts';

/** What a client takes for its own folder; a relative one would be another for us than it is for the client. */
export function folderFromEnvironment({ environment }: HostMachine, name: string): string | undefined {
  const said = environment[name] ?? '';
  return isAbsolute(said) ? said : undefined;
}

/** Where programs with windows keep what belongs to one person. */
export function applicationData(machine: HostMachine): string {
  const { environment, platform } = machine;
  const home = machine.home();
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return environment['APPDATA'] ?? join(home, 'AppData', 'Roaming');
  const config = environment['XDG_CONFIG_HOME'] ?? '';
  return isAbsolute(config) ? config : join(home, '.config');
}

/** What lies in a folder; nothing where there is none, or something else in its place. */
export function namesInFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
