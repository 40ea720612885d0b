import type { MemoryConnection } from '../cli/memory-connection.ts';
import { type Config, type HostMachine, readConfig } from '../config/config.ts';
import { readSettings, type LoadedSettings } from '../config/settings-file.ts';
import { readUnreachable } from '../roots/unreachable.ts';
import { failed, type Finding } from './finding.ts';
import { folderFindings } from './folder.ts';
import { listenerFindings } from './listener.ts';
import { diskFinding, keychainFinding, nodeFinding, settingsFindings } from './machine.ts';
import { memoryFindings } from './memory.ts';
import { packFindings } from './packs.ts';

interface Examined {
  readonly machine: HostMachine;
  readonly memory: () => Promise<MemoryConnection>;
  readonly now: number;
}

/** Runs every check. A check that later checks depend on comes first. */
export async function examine({ machine, memory, now }: Examined): Promise<Finding[]> {
  const first = [nodeFinding(process.version), await keychainFinding()];
  let settings: LoadedSettings;
  let config: Config;
  try {
    settings = readSettings(machine);
    config = readConfig(settings);
  } catch (error) {
    return [...first, failed('settings', error)];
  }
  const { folder } = config;
  const storage = [...settingsFindings(settings, machine), ...folderFindings(folder), diskFinding(folder)];
  // The memory is not opened in a folder that other users can read.
  if (storage.some(({ check, state }) => check === 'folder' && state === 'bad')) return [...first, ...storage];
  const { running, findings } = await listenerFindings(config);
  const { environment } = settings;
  // The program finding already says why the memory cannot be reached, and what to do.
  const stored = readUnreachable(folder) ? [] : await memoryFindings({ config, environment, running, memory, now });
  return [...first, ...storage, ...findings, ...stored, ...(await packFindings(config))];
}
