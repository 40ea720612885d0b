import { posix, win32 } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { DEFAULT_ADDRESS, QUOTA } from '../../contract/limits.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';
import type { Quota } from '../../core/store/store.ts';

/** What is set, checked. */
export interface Config {
  /** Where the memory lies, and all that belongs to it. */
  readonly folder: string;
  /** What each subject may hold. */
  readonly quota: Quota;
  /** What happens to a value that looks like a credential. */
  readonly secretPolicy: 'refuse' | 'warn';
  /** Undefined while there is no limit. */
  readonly writesPerMinute: number | undefined;
  /** Minutes without use after which the key is taken away; undefined while it never is. */
  readonly lockAfterMinutes: number | undefined;
  /** Keys that open the desktop's window from anywhere; undefined while there are none. */
  readonly shortcut: string | undefined;
  /** Where agents reach the memory. */
  readonly address: string;
  /** Names by which a program in front of this one is reached. */
  readonly allowedHosts: readonly string[];
  /** What `http.fetch` may ask. */
  readonly fetchHosts: readonly string[];
  /** Packs of the owner's own that are to be loaded; one that cannot be is left out, and said. */
  readonly packs: readonly string[];
  readonly ollama: OllamaSettings;
}

export interface OllamaSettings {
  /** Where it lies; the usual places unless it is set. */
  readonly path: string | undefined;
  readonly model: string;
  /** Where one runs that may be adopted, on this machine. */
  readonly url: URL;
}

/** What embeds unless its owner says otherwise, and where an Ollama runs that was started by others. */
export const OLLAMA_DEFAULTS = { model: 'nomic-embed-text', url: 'http://127.0.0.1:11434' } as const;

export interface HostMachine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Throws where the user has no home, as in some containers. */
  home(): string;
}

/** A setting that is set and cannot be honoured stops the start with its name: what it asked for is never guessed at. */
export function readConfig(machine: HostMachine): Config {
  const { environment } = machine;
  // Read where OpenClaw is connected; a start refuses a word it does not know, as for every setting.
  oneOf(environment, 'HELMDECK_OPENCLAW_QMD', ['on', 'off']);
  return {
    folder: resolveDataFolder(machine),
    quota: {
      facts: wholeNumber(environment, 'HELMDECK_QUOTA_FACTS') ?? QUOTA.facts,
      bytes: wholeNumber(environment, 'HELMDECK_QUOTA_BYTES') ?? QUOTA.bytes,
    },
    secretPolicy: oneOf(environment, 'HELMDECK_SECRETS', ['refuse', 'warn']) ?? 'refuse',
    writesPerMinute: wholeNumber(environment, 'HELMDECK_WRITES_PER_MINUTE'),
    lockAfterMinutes: lockAfterIn(environment),
    shortcut: shortcutIn(environment),
    address: environment['HELMDECK_ADDR'] ?? DEFAULT_ADDRESS,
    allowedHosts: hostsIn(environment),
    fetchHosts: fetchHostsIn(environment),
    packs: parsePackNames(environment),
    ollama: ollamaIn(machine),
  };
}

/** As a Host header bears it: a name in lower case, and a port unless it is the usual one. */
const HOST = /^([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

function hostsIn(environment: HostMachine['environment']): readonly string[] {
  const text = environment['HELMDECK_ALLOWED_HOSTS'];
  if (text === undefined) return [];
  const hosts = text.split(',').map((host) => host.trim());
  if (hosts.every((host) => HOST.test(host))) return hosts;
  throw new Failure(
    'store_unavailable',
    'HELMDECK_ALLOWED_HOSTS must be exact names as a Host header bears them, such as memory.example:8443, with commas between them; write them so, or leave it out.',
  );
}

function fetchHostsIn(environment: HostMachine['environment']): readonly string[] {
  const text = environment['HELMDECK_FETCH_HOSTS'];
  if (text === undefined) return [];
  const hosts = text.split(',').map((host) => host.trim());
  if (parseHostAllowlist(hosts, '')) return hosts;
  throw new Failure(
    'store_unavailable',
    'HELMDECK_FETCH_HOSTS must be full names of hosts in small letters, such as docs.example.com, or *.example.com for all below it, with commas between them and a port only where it is not 443; write them so, or leave it out.',
  );
}

/** With a name of its own and a tag, and of nobody's machines but this one. */
const MODEL = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63})?(:[a-z0-9][a-z0-9._-]{0,63})?$/i;
const OF_A_CLOUD = /[:-]cloud$/i;
const ON_THIS_MACHINE: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

function ollamaIn({ environment, platform }: HostMachine): OllamaSettings {
  const path = environment['HELMDECK_OLLAMA'];
  // A relative path would be another program wherever this one is started from.
  if (path !== undefined && !(platform === 'win32' ? win32 : posix).isAbsolute(path)) {
    throw new Failure(
      'store_unavailable',
      'HELMDECK_OLLAMA must be the absolute path of the program ollama; write it in full, or leave it out for the usual places.',
    );
  }
  const model = environment['HELMDECK_EMBEDDINGS_MODEL'] ?? OLLAMA_DEFAULTS.model;
  if (!MODEL.test(model) || OF_A_CLOUD.test(model)) {
    throw new Failure(
      'store_unavailable',
      'HELMDECK_EMBEDDINGS_MODEL must be the name of a model that Ollama runs on this machine, such as nomic-embed-text; write it so, or leave it out.',
    );
  }
  return { path, model, url: ollamaUrlIn(environment) };
}

function ollamaUrlIn(environment: HostMachine['environment']): URL {
  const text = environment['HELMDECK_OLLAMA_URL'] ?? OLLAMA_DEFAULTS.url;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // What is embedded leaves this machine by no setting.
  if (url?.protocol === 'http:' && ON_THIS_MACHINE.has(url.hostname) && url.href === `${url.origin}/`) return url;
  throw new Failure(
    'store_unavailable',
    'HELMDECK_OLLAMA_URL must be an address of this machine such as http://127.0.0.1:11434, with nothing behind the port; write it so, or leave it out.',
  );
}

/** Broken names are left for where they are loaded: one of them stops no start. */
export function parsePackNames(environment: HostMachine['environment']): readonly string[] {
  const names = (environment['HELMDECK_PACKS'] ?? '').split(',').map((name) => name.trim());
  return names.filter((name) => name !== '');
}

function wholeNumber(environment: HostMachine['environment'], name: string): number | undefined {
  const text = environment[name];
  if (text === undefined) return undefined;
  // Fifteen digits are exact in every number we compute with.
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Failure('store_unavailable', `${name} must be a whole number from 1; write digits only, or leave it out.`);
}

const DAY_MINUTES = 24 * 60;

function lockAfterIn(environment: HostMachine['environment']): number | undefined {
  const minutes = wholeNumber(environment, 'HELMDECK_LOCK_AFTER');
  if (minutes === undefined || minutes <= DAY_MINUTES) return minutes;
  throw new Failure(
    'store_unavailable',
    `HELMDECK_LOCK_AFTER must be ${DAY_MINUTES} minutes, a day, at most; write fewer, or leave it out to lock by hand only.`,
  );
}

/** One key with Ctrl, Alt, Cmd or Super: without one of them it would be taken from every text that is typed. */
const KEYS =
  /^(?=.*(Ctrl|Alt|Cmd|CmdOrCtrl|Super)\+)((Ctrl|Alt|Cmd|CmdOrCtrl|Super|Shift)\+){1,4}([A-Z0-9]|F([1-9]|1\d|2[0-4])|Space)$/;

function shortcutIn(environment: HostMachine['environment']): string | undefined {
  const keys = environment['HELMDECK_SHORTCUT'];
  if (keys === undefined || KEYS.test(keys)) return keys;
  throw new Failure(
    'store_unavailable',
    'HELMDECK_SHORTCUT must be keys such as Ctrl+Shift+M or CmdOrCtrl+Alt+Space: a letter, a digit, F1 to F24 or Space behind Ctrl, Alt, Cmd or Super; write them so, or leave it out.',
  );
}

function oneOf<Word extends string>(
  environment: HostMachine['environment'],
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = environment[name];
  if (text === undefined) return undefined;
  const word = words.find((known) => known === text);
  if (word !== undefined) return word;
  throw new Failure('store_unavailable', `${name} must be ${words.join(' or ')}; write one of them, or leave it out.`);
}

/** The rest of the settings may stand in it. */
export function resolveDataFolder(machine: HostMachine): string {
  const { environment, platform } = machine;
  const path = platform === 'win32' ? win32 : posix;
  const asked = environment['HELMDECK_DATA_DIR'];
  // A relative path would name another folder, and so another memory, wherever the program is started from.
  if (asked !== undefined && !path.isAbsolute(asked)) {
    throw new Failure(
      'store_unavailable',
      'HELMDECK_DATA_DIR must be an absolute path; write it in full, or leave it out for the usual place.',
    );
  }
  const folder = asked ?? usualFolder(machine);
  if (path.isAbsolute(folder)) return folder;
  throw new Failure(
    'store_unavailable',
    'This user has no home folder to keep a memory in; name a folder with HELMDECK_DATA_DIR.',
  );
}

/** Where the system wants programs to keep their data. */
function usualFolder(machine: HostMachine): string {
  const { environment, platform } = machine;
  if (platform === 'win32') {
    return win32.join(environment['APPDATA'] ?? win32.join(homeOf(machine), 'AppData', 'Roaming'), 'Helmdeck Memory');
  }
  if (platform === 'darwin') return posix.join(homeOf(machine), 'Library', 'Application Support', 'Helmdeck Memory');
  // The XDG specification has relative paths ignored, and so empty ones.
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
