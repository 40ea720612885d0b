import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { absoluteCliCommand } from '../../contract/cli-command.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import { QUOTA } from '../../contract/limits.ts';
import type { SettingRow, SettingsSnapshot } from '../../contract/settings.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import type { OwnerSettings } from '../../core/operations/memory.ts';
import { parseListenAddress } from '../../listeners/address.ts';
import { type Config, OLLAMA_DEFAULTS, readConfig } from './config.ts';
import { CONFIG_FILE, type LoadedSettings, readSettingsFile } from './settings-file.ts';
import { isSecretSetting, isSettingName, SETTINGS, type SettingName } from './settings-table.ts';

/** What holds while nothing is set, where that is one word. */
const USUAL: Partial<Record<SettingName, string>> = {
  HELMDECK_ADDR: '127.0.0.1:7345',
  HELMDECK_QUOTA_FACTS: String(QUOTA.facts),
  HELMDECK_QUOTA_BYTES: String(QUOTA.bytes),
  HELMDECK_WRITES_PER_MINUTE: 'no limit',
  HELMDECK_SECRETS: 'refuse',
  HELMDECK_LOCK_AFTER: 'never',
  HELMDECK_SHORTCUT: 'none',
  HELMDECK_OPENCLAW_QMD: 'on',
  HELMDECK_OLLAMA_URL: OLLAMA_DEFAULTS.url,
  HELMDECK_EMBEDDINGS_MODEL: OLLAMA_DEFAULTS.model,
};

/**
 * Those that decide neither where a key or a secret is read, nor what code is run, nor whom the program talks to. Whoever may change
 * these from a page could do the same there already.
 */
const CHANGEABLE: Partial<Record<SettingName, { readonly choices?: string[] }>> = {
  HELMDECK_ADDR: {},
  HELMDECK_QUOTA_FACTS: {},
  HELMDECK_QUOTA_BYTES: {},
  HELMDECK_WRITES_PER_MINUTE: {},
  HELMDECK_SECRETS: { choices: ['refuse', 'warn'] },
  HELMDECK_LOCK_AFTER: {},
  HELMDECK_SHORTCUT: {},
  HELMDECK_OPENCLAW_QMD: { choices: ['on', 'off'] },
};

/** The settings as their owner may look at them, and the few that a surface may change: in the file, for the next start. */
export class SettingsEditor implements OwnerSettings {
  readonly #config: Config;
  readonly #settings: Partial<LoadedSettings>;
  readonly #changed = new Map<SettingName, string | undefined>();

  constructor(config: Config, settings: Partial<LoadedSettings>) {
    this.#config = config;
    this.#settings = settings;
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
    if (!isSettingName(name) || !CHANGEABLE[name]) {
      throw refused(`${shown(name)} cannot be changed here; change it in the environment or in the configuration file.`);
    }
    if (this.#from(name) === 'environment') {
      throw refused(`${name} is set in the environment, which goes before the file; change it there.`);
    }
    if (value !== undefined) check(name, value);
    const path = this.#settings.file ?? join(this.#config.folder, CONFIG_FILE);
    const { [name]: _before, ...others } = readSettingsFile(path) ?? {};
    const file = { ...others, ...(value !== undefined && { [name]: SETTINGS[name].as === 'number' ? Number(value) : value }) };
    write(path, `${JSON.stringify(file, undefined, 2)}\n`);
    this.#changed.set(name, value);
    return this.#row(name);
  }

  #row(name: SettingName): SettingRow {
    const value = this.#settings.environment?.[name];
    const usual = USUAL[name];
    const from = this.#from(name);
    const next = this.#changed.get(name);
    const choices = CHANGEABLE[name]?.choices;
    return {
      name,
      from,
      changeable: CHANGEABLE[name] !== undefined && from !== 'environment',
      ...(choices && { choices }),
      ...(value !== undefined && !isSecretSetting(name) && { value }),
      ...(usual !== undefined && { usual }),
      ...(this.#changed.has(name) && next !== value && { next: next ?? usual ?? 'not set' }),
    };
  }

  #from(name: SettingName): SettingRow['from'] {
    const { environment, fromFile = [] } = this.#settings;
    return environment?.[name] === undefined ? 'nowhere' : fromFile.includes(name) ? 'file' : 'environment';
  }
}

/** By whom it is read at the next start: what would stop that is refused now. */
function check(name: SettingName, value: string): void {
  try {
    if (name === 'HELMDECK_ADDR') parseListenAddress(value);
    // The rest of the machine is not what is looked at.
    readConfig({ environment: { [name]: value }, platform: 'linux', home: () => '/' });
  } catch (cause) {
    throw refused(asFailure(cause).message, cause);
  }
}

/** Only in a file of the owner's own, and where a link leads rather than in its place. */
function write(path: string, text: string): void {
  try {
    const at = lstatSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path;
    const owner = lstatSync(at, { throwIfNoEntry: false })?.uid;
    if (process.platform !== 'win32' && owner !== undefined && owner !== process.getuid?.()) {
      throw refused('The configuration file is not yours; whoever it belongs to changes it.');
    }
    writeDurableFile(at, text);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw refused('The configuration file cannot be written; check its folder and its permissions.', cause);
  }
}

const shown = (name: string): string => (isSettingName(name) ? name : 'This');

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_input', message, cause === undefined ? {} : { cause });
