import type { MemoryConnection } from '../cli/memory-connection.ts';
import { type Config, type HostMachine, readConfig } from '../config/config.ts';
import { readSettings, type LoadedSettings } from '../config/settings-file.ts';
import { readUnreachable } from '../roots/unreachable.ts';
import { failed, type Finding } from './finding.ts';
import { folderFindings } from './folder.ts';
import { listenerFindings, teamFindings } from './listener.ts';
import { diskFinding, keychainFinding, nodeFinding, settingsFindings } from './machine.ts';
import { memoryFindings } from './memory.ts';
import { packFindings } from './packs.ts';

interface DoctorInput {
  readonly machine: HostMachine;
  readonly memory: () => Promise<MemoryConnection>;
  readonly now: number;
}

/** Runs all checks. Skips checks that depend on a check that failed. */
export async function examine({ machine, memory, now }: DoctorInput): Promise<Finding[]> {
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
  // Do not open the memory if the data folder is not safe, for example because other users can access it.
  if (storage.some(({ check, state }) => check === 'folder' && state === 'bad')) return [...first, ...storage];
  const { running, findings } = await listenerFindings(config);
  const { environment } = settings;
  // Skip the memory's checks if the running program accepts no connections. The finding `program` already says why.
  const stored = readUnreachable(folder) ? [] : await memoryFindings({ config, environment, machine, running, memory, now });
  return [...first, ...storage, ...findings, ...teamFindings(config, now), ...stored, ...(await packFindings(config))];
}
