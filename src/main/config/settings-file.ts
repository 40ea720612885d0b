import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { DEFAULT_ADDRESS } from '../../contract/names.ts';
import { resolveDataFolder, type HostMachine } from './config.ts';
import { configFailure, isSettingName, type SettingName, settingOf, SETTINGS } from './settings-table.ts';

type Environment = HostMachine['environment'];

export const CONFIG_FILE = 'config.json';
export const CONFIG_PATH_SETTING = 'HELMDECK_CONFIG';

/** The machine, with the settings from the configuration file added to `environment`. Environment variables take precedence. */
export interface LoadedSettings extends HostMachine {
  /** Path of the configuration file. Undefined if the file does not exist. */
  readonly file: string | undefined;
  /** Names of the settings that come from the configuration file. */
  readonly fromFile: readonly string[];
}

/** Reads the environment and the configuration file. Throws if the file is invalid. */
export function readSettings(machine: HostMachine): LoadedSettings {
  const { environment, platform } = machine;
  const home = (): string => machine.home();
  const named = environment[CONFIG_PATH_SETTING];
  if (named !== undefined && !isAbsolute(named))
    throw configFailure(`${CONFIG_PATH_SETTING} must be an absolute path; write it in full.`);
  const path = named ?? join(resolveDataFolder(machine), CONFIG_FILE);
  const text = read(path, named === undefined);
  if (text === undefined) return { environment, platform, home, file: undefined, fromFile: [] };
  const where =
    named === undefined ? `The file ${CONFIG_FILE} in the data folder` : `The file at the path in ${CONFIG_PATH_SETTING}`;
  const set = parse(text.content, where);
  if (named === undefined && set.has('HELMDECK_DATA_DIR')) {
    throw configFailure(`HELMDECK_DATA_DIR cannot be set in the data folder itself; set the environment variable instead.`);
  }
  const secret = [...set.keys()].find((name) => settingOf(name).secret);
  if (secret !== undefined && text.readByOthers) {
    throw configFailure(`${where} contains ${secret}, and other users can read the file; run chmod 600 on it.`);
  }
  const added = [...set].filter(([name]) => !isSetIn(environment, name));
  return {
    environment: { ...environment, ...Object.fromEntries(added) },
    platform,
    home,
    file: path,
    fromFile: added.map(([name]) => name),
  };
}

/** Returns the contents of the configuration file, or undefined if there is no such file. Throws if the file is invalid. */
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
    throw configFailure(
      optional
        ? `The file ${CONFIG_FILE} in the data folder cannot be read; check its permissions.`
        : `The file at the path in ${CONFIG_PATH_SETTING} cannot be read; check its path and its permissions.`,
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

/** Throws if another user (except root) can write the file, because that user could decide where the key is read from. */
function refuseForeign({ mode, uid }: Stats): void {
  if ((mode & 0o170000) !== 0o100000) throw configFailure('The configuration file must be a regular file; check its path.');
  if (process.platform === 'win32') return;
  if ((uid !== process.getuid?.() && uid !== 0) || (mode & 0o022) !== 0) {
    throw configFailure(
      'The configuration file must belong to you or root, and other users must not be able to write to it; run chmod 600 on it.',
    );
  }
}

function parse(content: string, where: string): Map<SettingName, string> {
  let settings: unknown;
  try {
    settings = JSON.parse(content);
  } catch {
    // Do not include the parser's message, because it quotes the file, which can contain secrets.
    throw configFailure(`${where} is not JSON; write it as {"HELMDECK_ADDR": "${DEFAULT_ADDRESS}"}.`);
  }
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
    throw configFailure(
      `${where} must contain one JSON object with settings; write it as {"HELMDECK_ADDR": "${DEFAULT_ADDRESS}"}.`,
    );
  }
  return new Map(
    Object.entries(settings).map(([name, value]) => [known(name, where), toEnvironmentText(known(name, where), value)]),
  );
}

function known(name: string, where: string): SettingName {
  if (isSettingName(name)) return name;
  const shown = /^[\w.-]{1,64}$/.test(name) ? name : 'a name';
  throw configFailure(`${where} sets ${shown}, which is not a setting; valid settings are ${Object.keys(SETTINGS).join(', ')}.`);
}

/** Converts a value from the configuration file to the text that an environment variable would contain. */
function toEnvironmentText(name: SettingName, value: unknown): string {
  const { fileType } = settingOf(name);
  if (fileType === 'text' && typeof value === 'string') return value;
  if (fileType === 'number' && typeof value === 'number') return String(value);
  if (fileType === 'list' && Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(',');
  const wanted = { text: 'text in quotes', number: 'a number without quotes', list: 'a list of texts in quotes' }[fileType];
  throw configFailure(`${name} must be ${wanted} in the configuration file.`);
}

/** Whether the environment sets `NAME` or `NAME_FILE`. Each of these variables overrides both forms in the configuration file. */
function isSetIn(environment: Environment, name: SettingName): boolean {
  const plain = name.replace(/_FILE$/, '');
  return environment[plain] !== undefined || environment[`${plain}_FILE`] !== undefined;
}
