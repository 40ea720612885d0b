import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { absoluteCliCommand } from '../../contract/cli-command.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { SettingRow, SettingsSnapshot } from '../../contract/settings.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import type { OwnerSettings } from '../../core/operations/memory.ts';
import type { Config } from './config.ts';
import { CONFIG_FILE, type LoadedSettings, readSettingsFile } from './settings-file.ts';
import { isSettingName, readSetting, type SettingName, settingOf, SETTINGS } from './settings-table.ts';

/** Shows the settings to the owner. Writes changes to the configuration file. A change takes effect at the next start. */
export class SettingsEditor implements OwnerSettings {
  readonly #config: Config;
  readonly #settings: Partial<LoadedSettings>;
  readonly #apply: Partial<Record<SettingName, (value: string | undefined) => void>>;
  readonly #changed = new Map<SettingName, string | undefined>();

  /** `apply` has a function for each setting whose changes take effect immediately. */
  constructor(
    config: Config,
    settings: Partial<LoadedSettings>,
    apply: Partial<Record<SettingName, (value: string | undefined) => void>> = {},
  ) {
    this.#config = config;
    this.#settings = settings;
    this.#apply = apply;
  }

  snapshot(): SettingsSnapshot {
    const { folder, address } = this.#config;
    const { file } = this.#settings;
    return {
      folder,
      command: absoluteCliCommand(),
      address,
      ...(file !== undefined && { file }),
      settings: (Object.keys(SETTINGS) as SettingName[]).map((name) => this.#row(name)),
    };
  }

  change(name: string, value: string | undefined): SettingRow {
    if (!isSettingName(name) || settingOf(name).label === undefined) {
      throw refused(
        `${shown(name)} cannot be changed here; change it with an environment variable or in the configuration file.`,
      );
    }
    if (this.#from(name) === 'environment') {
      throw refused(`${name} is set by an environment variable, which overrides the configuration file; change the variable.`);
    }
    if (value !== undefined) requireValid(name, value);
    const path = this.#settings.file ?? join(this.#config.folder, CONFIG_FILE);
    const { [name]: _before, ...others } = readSettingsFile(path) ?? {};
    const file = {
      ...others,
      ...(value !== undefined && { [name]: settingOf(name).fileType === 'number' ? Number(value) : value }),
    };
    write(path, `${JSON.stringify(file, undefined, 2)}\n`);
    this.#changed.set(name, value);
    this.#apply[name]?.(value);
    return this.#row(name);
  }

  #row(name: SettingName): SettingRow {
    const { label, help, unit, choices, secret, immediate, default: usual = settingOf(name).whenUnset } = settingOf(name);
    const next = this.#changed.get(name);
    const applied = immediate && this.#changed.has(name);
    const value = applied ? next : this.#settings.environment?.[name];
    const from = applied ? (next === undefined ? 'nowhere' : 'file') : this.#from(name);
    return {
      name,
      from,
      ...(label !== undefined && { label }),
      help,
      ...(unit && { unit }),
      changeable: label !== undefined && from !== 'environment',
      ...(choices && { choices: [...choices] }),
      ...(value !== undefined && !secret && { value }),
      ...(usual !== undefined && { usual }),
      ...(this.#changed.has(name) && next !== value && { next: next ?? usual ?? 'not set' }),
    };
  }

  #from(name: SettingName): SettingRow['from'] {
    const { environment, fromFile = [] } = this.#settings;
    return environment?.[name] === undefined ? 'nowhere' : fromFile.includes(name) ? 'file' : 'environment';
  }
}

/** Throws if the value is invalid, because the program does not start with an invalid setting. */
function requireValid(name: SettingName, value: string): void {
  try {
    readSetting({ environment: { [name]: value }, platform: process.platform }, name);
  } catch (cause) {
    throw refused(asFailure(cause).message, cause);
  }
}

/** Writes the configuration file, unless another user owns the file. If `path` is a symbolic link, writes its target. */
function write(path: string, text: string): void {
  try {
    const target = lstatSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path;
    const owner = lstatSync(target, { throwIfNoEntry: false })?.uid;
    if (process.platform !== 'win32' && owner !== undefined && owner !== process.getuid?.()) {
      throw refused('The configuration file belongs to another user; ask that user to change it.');
    }
    writeDurableFile(target, text);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw refused('The configuration file cannot be written; check its folder and its permissions.', cause);
  }
}

const shown = (name: string): string => (isSettingName(name) ? name : 'This setting');

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_input', message, cause === undefined ? {} : { cause });
