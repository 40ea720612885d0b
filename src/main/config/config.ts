import { join, posix, win32 } from 'node:path';
import type { MeaningChoice } from '../../contract/status.ts';
import { readProvidedSecret } from '../../core/crypto/keys/provided-secret.ts';
import type { BriefSettings } from '../../core/operations/memory.ts';
import { parseDatabaseUrl } from '../../core/store/postgres/database-url.ts';
import type { DatabaseOptions } from '../../core/store/postgres/database.ts';
import type { Quota } from '../../core/store/store.ts';
import type { TeamSettings } from '../../listeners/team/team-listener.ts';
import { configFailure, readSetting, SETTINGS } from './settings-table.ts';

export interface Config {
  /** Path of the data folder. */
  readonly folder: string;
  /** The database that stores the memory. Undefined if the data folder stores it. */
  readonly database: DatabaseOptions | undefined;
  /** Maximum number of facts and bytes that each subject can store. */
  readonly quota: Quota;
  /** What to do with a value that looks like a credential: refuse it, or store it with a warning. */
  readonly secretPolicy: 'refuse' | 'warn';
  /** Maximum writes per minute for each token. Undefined means no limit. */
  readonly writesPerMinute: number | undefined;
  /** Idle minutes before the memory locks itself. Undefined means never. */
  readonly lockAfterMinutes: number | undefined;
  /** Keyboard shortcut that opens the desktop window while another program has the focus. */
  readonly shortcut: string | undefined;
  /** Address to listen on. Only the listener checks the address, so that the window opens even if the address is invalid. */
  readonly address: string;
  /** Host headers to accept in addition to `address`, for a reverse proxy. */
  readonly allowedHosts: readonly string[];
  /** How other machines connect. Undefined if only this machine can connect. */
  readonly team: TeamSettings | undefined;
  /** Hosts that the pack `http.fetch` is allowed to read. */
  readonly fetchHosts: readonly string[];
  /** Names of the owner's packs to load. A pack that cannot be loaded is skipped and reported. */
  readonly packs: readonly string[];
  readonly ollama: OllamaSettings;
  readonly brief: BriefSettings;
  /** The model of search by meaning. Undefined means the bundled model if it is installed. */
  readonly meaning: MeaningChoice | undefined;
}

export interface OllamaSettings {
  /** Path of the Ollama program. If undefined, the usual folders are searched. */
  readonly path: string | undefined;
  readonly model: string;
  /** Address of an Ollama that the owner runs on this machine. Used only if the owner chooses that Ollama. */
  readonly url: URL;
}

export interface HostMachine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Returns the user's home folder. Throws if the user has no home folder, as in some containers. */
  home(): string;
}

/** Parses all settings. Throws an error that names the first invalid setting; never replaces an invalid value by a default. */
export function readConfig(machine: HostMachine): Config {
  // Only the OpenClaw connector uses this setting. Check the setting here, so that an error is reported at startup.
  readSetting(machine, 'HELMDECK_OPENCLAW_QMD');
  return {
    folder: resolveDataFolder(machine),
    database: readDatabase(machine),
    quota: { facts: readSetting(machine, 'HELMDECK_QUOTA_FACTS'), bytes: readSetting(machine, 'HELMDECK_QUOTA_BYTES') },
    secretPolicy: readSetting(machine, 'HELMDECK_SECRETS'),
    writesPerMinute: readSetting(machine, 'HELMDECK_WRITES_PER_MINUTE'),
    lockAfterMinutes: readSetting(machine, 'HELMDECK_LOCK_AFTER'),
    shortcut: readSetting(machine, 'HELMDECK_SHORTCUT'),
    address: machine.environment['HELMDECK_ADDR'] ?? SETTINGS.HELMDECK_ADDR.default,
    allowedHosts: readSetting(machine, 'HELMDECK_ALLOWED_HOSTS') ?? [],
    team: readTeamSettings(machine),
    fetchHosts: readSetting(machine, 'HELMDECK_FETCH_HOSTS') ?? [],
    packs: readSetting(machine, 'HELMDECK_PACKS') ?? [],
    ollama: {
      path: readSetting(machine, 'HELMDECK_OLLAMA'),
      model: readSetting(machine, 'HELMDECK_EMBEDDINGS_MODEL'),
      url: readSetting(machine, 'HELMDECK_OLLAMA_URL'),
    },
    meaning: readSetting(machine, 'HELMDECK_MEANING'),
    brief: {
      bytes: readSetting(machine, 'HELMDECK_BRIEF_BYTES'),
      receipts: readSetting(machine, 'HELMDECK_RECEIPTS') === 'on',
    },
  };
}

/** Reads the address of the database. No message contains the address, because it can contain a password. */
function readDatabase({ environment }: HostMachine): DatabaseOptions | undefined {
  const provided = readProvidedSecret(environment, 'HELMDECK_DATABASE_URL');
  return provided && parseDatabaseUrl(provided.text);
}

/**
 * Returns how other machines connect, or undefined if they cannot. Refuses plain HTTP without a proxy, because tokens and facts
 * would be readable on the network (R-TEAM-01).
 */
function readTeamSettings(machine: HostMachine): TeamSettings | undefined {
  const address = readSetting(machine, 'HELMDECK_SERVER_ADDR');
  const hosts = readSetting(machine, 'HELMDECK_SERVER_HOSTS') ?? [];
  const certificateFile = readSetting(machine, 'HELMDECK_TLS_CERT_FILE');
  const keyFile = readSetting(machine, 'HELMDECK_TLS_KEY_FILE');
  const proxies = readSetting(machine, 'HELMDECK_TRUSTED_PROXY') ?? [];
  if (address === undefined) {
    const unused = TEAM_SETTINGS.find((name) => machine.environment[name] !== undefined);
    if (unused === undefined) return undefined;
    throw configFailure(`${unused} has no effect without HELMDECK_SERVER_ADDR; set HELMDECK_SERVER_ADDR, or remove ${unused}.`);
  }
  if ((certificateFile === undefined) !== (keyFile === undefined)) {
    throw configFailure('HELMDECK_TLS_CERT_FILE and HELMDECK_TLS_KEY_FILE need each other; set both, or remove both.');
  }
  if (certificateFile === undefined && proxies.length === 0) {
    throw configFailure(
      'HELMDECK_SERVER_ADDR needs TLS, because tokens and facts would be readable on the network; set HELMDECK_TLS_CERT_FILE and HELMDECK_TLS_KEY_FILE, or set HELMDECK_TRUSTED_PROXY to the address of a proxy that provides TLS.',
    );
  }
  if (proxies.length > 0 && hosts.length === 0) {
    throw configFailure(
      'HELMDECK_TRUSTED_PROXY needs HELMDECK_SERVER_HOSTS; set it to the names with which clients address the proxy.',
    );
  }
  const certificate = certificateFile !== undefined && keyFile !== undefined ? { certificateFile, keyFile } : undefined;
  return { address, hosts, proxies, certificate };
}

const TEAM_SETTINGS = ['HELMDECK_SERVER_HOSTS', 'HELMDECK_TLS_CERT_FILE', 'HELMDECK_TLS_KEY_FILE', 'HELMDECK_TRUSTED_PROXY'];

/** Names the place where the memory is stored, without the password of a database. */
export function memoryPlace({ folder, database }: Pick<Config, 'folder' | 'database'>): string {
  if (!database) return join(folder, 'memory.db');
  const { host = '', port, database: name } = database.connection;
  return `the schema ${database.schema} of the PostgreSQL database ${name} at ${host}:${port}`;
}

/** Throws if HELMDECK_ADDR is invalid. The desktop does not call this function, because its window shows the problem. */
export const requireValidAddress = (machine: HostMachine): void => void readSetting(machine, 'HELMDECK_ADDR');

/** Returns the path of the data folder. Callers need this path first, because the folder contains the configuration file. */
export function resolveDataFolder(machine: HostMachine): string {
  const folder = readSetting(machine, 'HELMDECK_DATA_DIR') ?? defaultFolder(machine);
  if ((machine.platform === 'win32' ? win32 : posix).isAbsolute(folder)) return folder;
  throw configFailure('This user has no home folder to store a memory in; set HELMDECK_DATA_DIR to a folder.');
}

/** Returns the default data folder, inside the folder where the operating system stores application data. */
function defaultFolder(machine: HostMachine): string {
  const { environment, platform } = machine;
  if (platform === 'win32') {
    return win32.join(environment['APPDATA'] ?? win32.join(homeOf(machine), 'AppData', 'Roaming'), 'Helmdeck Memory');
  }
  if (platform === 'darwin') return posix.join(homeOf(machine), 'Library', 'Application Support', 'Helmdeck Memory');
  // Ignore a relative or empty path, as the XDG specification requires.
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
