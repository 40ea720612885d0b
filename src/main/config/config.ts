import { posix, win32 } from 'node:path';
import type { Quota } from '../../core/store/store.ts';
import { configFailure, readSetting, SETTINGS } from './settings-table.ts';

/** The settings, parsed and checked. */
export interface Config {
  /** The data folder. */
  readonly folder: string;
  /** What each subject may store. */
  readonly quota: Quota;
  /** What happens to a value that looks like a credential. */
  readonly secretPolicy: 'refuse' | 'warn';
  /** Undefined means no limit. */
  readonly writesPerMinute: number | undefined;
  /** Idle minutes before the memory locks itself. Undefined means never. */
  readonly lockAfterMinutes: number | undefined;
  /** The keyboard shortcut that opens the desktop's window from anywhere. */
  readonly shortcut: string | undefined;
  /** The address to listen on. The listener checks it, so that the window opens even if it is invalid. */
  readonly address: string;
  /** More Host headers to accept, for a proxy in front of the program. */
  readonly allowedHosts: readonly string[];
  /** Hosts that the pack `http.fetch` may read. */
  readonly fetchHosts: readonly string[];
  /** The owner's packs to load. A pack that cannot be loaded is skipped and reported. */
  readonly packs: readonly string[];
  readonly ollama: OllamaSettings;
}

export interface OllamaSettings {
  /** The program's path. Undefined means to search the usual places. */
  readonly path: string | undefined;
  readonly model: string;
  /** Where an Ollama may run that the owner started, on this machine. */
  readonly url: URL;
}

export interface HostMachine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Throws where the user has no home folder, as in some containers. */
  home(): string;
}

/** Throws a failure that names the first invalid setting; the program never guesses what it meant. */
export function readConfig(machine: HostMachine): Config {
  // The OpenClaw connector uses it. Checking it here lets the start refuse an invalid one.
  readSetting(machine, 'HELMDECK_OPENCLAW_QMD');
  return {
    folder: resolveDataFolder(machine),
    quota: { facts: readSetting(machine, 'HELMDECK_QUOTA_FACTS'), bytes: readSetting(machine, 'HELMDECK_QUOTA_BYTES') },
    secretPolicy: readSetting(machine, 'HELMDECK_SECRETS'),
    writesPerMinute: readSetting(machine, 'HELMDECK_WRITES_PER_MINUTE'),
    lockAfterMinutes: readSetting(machine, 'HELMDECK_LOCK_AFTER'),
    shortcut: readSetting(machine, 'HELMDECK_SHORTCUT'),
    address: machine.environment['HELMDECK_ADDR'] ?? SETTINGS.HELMDECK_ADDR.default,
    allowedHosts: readSetting(machine, 'HELMDECK_ALLOWED_HOSTS') ?? [],
    fetchHosts: readSetting(machine, 'HELMDECK_FETCH_HOSTS') ?? [],
    packs: readSetting(machine, 'HELMDECK_PACKS') ?? [],
    ollama: {
      path: readSetting(machine, 'HELMDECK_OLLAMA'),
      model: readSetting(machine, 'HELMDECK_EMBEDDINGS_MODEL'),
      url: readSetting(machine, 'HELMDECK_OLLAMA_URL'),
    },
  };
}

/** Refuses an invalid HELMDECK_ADDR. The desktop does not call this, so that its window opens and shows the problem. */
export const requireValidAddress = (machine: HostMachine): void => void readSetting(machine, 'HELMDECK_ADDR');

/** Read before the other settings, because the configuration file is in it. */
export function resolveDataFolder(machine: HostMachine): string {
  const folder = readSetting(machine, 'HELMDECK_DATA_DIR') ?? defaultFolder(machine);
  if ((machine.platform === 'win32' ? win32 : posix).isAbsolute(folder)) return folder;
  throw configFailure('This user has no home folder to store a memory in; name a folder with HELMDECK_DATA_DIR.');
}

/** The folder for application data of each system. */
function defaultFolder(machine: HostMachine): string {
  const { environment, platform } = machine;
  if (platform === 'win32') {
    return win32.join(environment['APPDATA'] ?? win32.join(homeOf(machine), 'AppData', 'Roaming'), 'Helmdeck Memory');
  }
  if (platform === 'darwin') return posix.join(homeOf(machine), 'Library', 'Application Support', 'Helmdeck Memory');
  // The XDG specification ignores relative paths, and so empty ones.
  const data = environment['XDG_DATA_HOME'] ?? '';
  return posix.join(posix.isAbsolute(data) ? data : posix.join(homeOf(machine), '.local', 'share'), 'helmdeck-memory');
}

function homeOf(machine: HostMachine): string {
  try {
    return machine.home();
  } catch {
    return '';
  }
}
