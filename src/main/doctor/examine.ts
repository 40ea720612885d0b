import type { MemoryConnection } from '../cli/memory-connection.ts';
import { type Config, type HostMachine, readConfig } from '../config/config.ts';
import { readSettings, type LoadedSettings } from '../config/settings-file.ts';
import { readUnreachable } from '../roots/unreachable.ts';
import { type Finding, refusal } from './finding.ts';
import { folderFindings } from './folder.ts';
import { listenerFindings } from './listener.ts';
import { diskFinding, keychainFinding, nodeFinding, settingsFindings } from './machine.ts';
import { memoryFindings } from './memory.ts';
import { packFindings } from './packs.ts';

interface Patient {
  readonly machine: HostMachine;
  /** The memory as every command finds it. */
  readonly memory: () => Promise<MemoryConnection>;
  readonly now: number;
}

/** Everything that is known to keep a memory from working, in the order in which one rests on the other. */
export async function examine({ machine, memory, now }: Patient): Promise<Finding[]> {
  const first = [nodeFinding(process.version), await keychainFinding()];
  let settings: LoadedSettings;
  let config: Config;
  try {
    settings = readSettings(machine);
    config = readConfig(settings);
  } catch (error) {
    return [...first, refusal('settings', error)];
  }
  const { folder } = config;
  const place = [...settingsFindings(settings, machine), ...folderFindings(folder), diskFinding(folder)];
  // A folder that is not the owner's alone is not opened.
  if (place.some(({ check, state }) => check === 'folder' && state === 'bad')) return [...first, ...place];
  const { running, findings } = await listenerFindings(config);
  const { environment } = settings;
  // What holds the memory and accepts no connections has been told, with the remedy.
  const stored = readUnreachable(folder) ? [] : await memoryFindings({ config, environment, running, memory, now });
  return [...first, ...place, ...findings, ...stored, ...(await packFindings(config))];
}
