import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { resolveDataFolder, type HostMachine } from './config.ts';
import { isSecretSetting, isSettingName, SETTINGS, type SettingName } from './settings-table.ts';

type Environment = HostMachine['environment'];

export const CONFIG_FILE = 'config.json';
export const CONFIG_PATH_SETTING = 'HELMDECK_CONFIG';

export interface LoadedSettings {
  /** The environment, with what the file adds to it. */
  readonly environment: Environment;
  /** The file that was read, if there is one. */
  readonly file: string | undefined;
  /** What is set there and not in the environment. */
  readonly fromFile: readonly string[];
}

/** What is set, in the environment or else in the configuration file. A file that cannot be honoured stops the start. */
export function readSettings(machine: HostMachine): LoadedSettings {
  const { environment } = machine;
  const named = environment[CONFIG_PATH_SETTING];
  if (named !== undefined && !isAbsolute(named))
    throw refused(`${CONFIG_PATH_SETTING} must be an absolute path; write it in full.`);
  const path = named ?? join(resolveDataFolder(machine), CONFIG_FILE);
  const text = read(path, named === undefined);
  if (text === undefined) return { environment, file: undefined, fromFile: [] };
  const where = named === undefined ? `The file ${CONFIG_FILE} in the data folder` : `The file that ${CONFIG_PATH_SETTING} names`;
  const set = parse(text.content, where);
  if (named === undefined && set.has('HELMDECK_DATA_DIR')) {
    throw refused(`HELMDECK_DATA_DIR cannot stand in the data folder itself; set it in the environment.`);
  }
  const secret = [...set.keys()].find(isSecretSetting);
  if (secret !== undefined && text.readByOthers) {
    throw refused(`${where} holds ${secret} and can be read by others; run chmod 600 on it.`);
  }
  const added = [...set].filter(([name]) => !isNamedIn(environment, name));
  return {
    environment: { ...environment, ...Object.fromEntries(added) },
    file: path,
    fromFile: added.map(([name]) => name),
  };
}

/** What stands in the file, as it stands there; undefined where there is none. What cannot be honoured is refused as at a start. */
export function readSettingsFile(path: string): Readonly<Record<string, unknown>> | undefined {
  const text = read(path, true);
  if (text === undefined) return undefined;
  parse(text.content, 'The configuration file');
  return { ...(JSON.parse(text.content) as object) };
}

function read(path: string, optional: boolean): { content: string; readByOthers: boolean } | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    const missing = cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR');
    if (missing && optional) return undefined;
    throw refused(
      optional
        ? `The file ${CONFIG_FILE} in the data folder cannot be read; check its permissions.`
        : `The file that ${CONFIG_PATH_SETTING} names cannot be read; check its path and its permissions.`,
      cause,
    );
  }
  try {
    const stats = fstatSync(file);
    refuseForeign(stats);
    return { content: readFileSync(file, 'utf8'), readByOthers: process.platform !== 'win32' && (stats.mode & 0o077) !== 0 };
  } finally {
    closeSync(file);
  }
}

/** Whoever can write it decides where the key is read from. */
function refuseForeign({ mode, uid }: Stats): void {
  if ((mode & 0o170000) !== 0o100000) throw refused('The configuration must be a plain file; check what stands in its place.');
  if (process.platform === 'win32') return;
  if ((uid !== process.getuid?.() && uid !== 0) || (mode & 0o022) !== 0) {
    throw refused(
      'The configuration file must be yours, or of root, and others must not be able to write it; run chmod 600 on it.',
    );
  }
}

function parse(content: string, where: string): Map<SettingName, string> {
  let settings: unknown;
  try {
    settings = JSON.parse(content);
  } catch {
    // What the parser says repeats what stands there.
    throw refused(`${where} is not JSON; write it as {"HELMDECK_ADDR": "127.0.0.1:7345"}.`);
  }
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
    throw refused(
      `${where} must hold one JSON object, with the names of settings; write it as {"HELMDECK_ADDR": "127.0.0.1:7345"}.`,
    );
  }
  return new Map(Object.entries(settings).map(([name, value]) => [known(name, where), spelled(known(name, where), value)]));
}

function known(name: string, where: string): SettingName {
  if (isSettingName(name)) return name;
  const shown = /^[\w.-]{1,64}$/.test(name) ? name : 'a name';
  throw refused(`${where} sets ${shown}, which is no setting; there are ${Object.keys(SETTINGS).join(', ')}.`);
}

/** As the environment would hold it; there everything is text. */
function spelled(name: SettingName, value: unknown): string {
  const { as } = SETTINGS[name];
  if (as === 'text' && typeof value === 'string') return value;
  if (as === 'number' && typeof value === 'number') return String(value);
  if (as === 'list' && Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(',');
  const wanted = { text: 'a text in quotes', number: 'a number without quotes', list: 'a list of texts' }[as];
  throw refused(`${name} must be ${wanted} in the configuration file.`);
}

/** A key that is handed in as itself and one that is named by its file are one setting: they do not mix. */
function isNamedIn(environment: Environment, name: SettingName): boolean {
  const plain = name.replace(/_FILE$/, '');
  return environment[plain] !== undefined || environment[`${plain}_FILE`] !== undefined;
}

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('store_unavailable', message, cause === undefined ? {} : { cause });
