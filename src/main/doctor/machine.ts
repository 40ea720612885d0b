import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { MIB } from '../../contract/units.ts';
import { loadKeychain } from '../../core/crypto/keys/keychain.ts';
import { readProvidedCredentials } from '../../core/crypto/keys/provided-credentials.ts';
import { readTokenSecret } from '../../core/crypto/keys/token-secret.ts';
import type { HostMachine } from '../config/config.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import { isSettingName } from '../config/settings-table.ts';
import { bad, failed, type Finding, ok, warn } from './finding.ts';

const OLDEST_NODE = 24;
const WARN_BELOW_BYTES = 100 * MIB;
const BAD_BELOW_BYTES = 8 * MIB;

/** HELMDECK_ variables that are not settings: the launcher or the bridge reads them, or they name the configuration file. */
const OTHER_VARIABLES = new Set(['HELMDECK_CONFIG', 'HELMDECK_NODE', 'HELMDECK_TOKEN', 'HELMDECK_TOKEN_FILE', 'HELMDECK_CLIENT']);

export function nodeFinding(version: string): Finding {
  if (Number(/^v(\d+)/.exec(version)?.[1]) >= OLDEST_NODE) return ok('node', `This command runs with Node ${version}.`);
  return bad(
    'node',
    `Node ${version} is too old.`,
    `Install Node ${OLDEST_NODE} from https://nodejs.org, or set HELMDECK_NODE to the path of a newer Node.`,
  );
}

export async function keychainFinding(load = loadKeychain): Promise<Finding> {
  if (await load()) return ok('keychain', 'The library of the OS keychain is installed.');
  return warn(
    'keychain',
    'The library of the OS keychain is not installed, so the keychain cannot store a key.',
    process.platform === 'linux'
      ? 'Install libsecret (on Debian: libsecret-1-0), or store the key in a file: helmdeck-memory key init --file'
      : 'Reinstall Helmdeck Memory, or store the key in a file: helmdeck-memory key init --file',
  );
}

export function settingsFindings({ file, environment }: LoadedSettings, machine: HostMachine): Finding[] {
  const unknown = Object.keys(machine.environment).filter(
    (name) => name.startsWith('HELMDECK_') && !isSettingName(name) && !OTHER_VARIABLES.has(name),
  );
  return [
    ok(
      'settings',
      `Settings come from the environment${file === undefined ? '. There is no config.json' : ` and from ${file}`}.`,
    ),
    ...(unknown.length === 0
      ? []
      : [
          warn(
            'settings',
            `Unknown settings are ignored: ${unknown.join(', ')}.`,
            'List the settings with: helmdeck-memory help settings',
          ),
        ]),
    ...(machine.environment['HELMDECK_MEMORY_KEY'] === undefined
      ? []
      : [
          warn(
            'settings',
            'HELMDECK_MEMORY_KEY holds the key in the environment, where your other programs can read it.',
            'Put the key into a file that only you can read, and set HELMDECK_MEMORY_KEY_FILE to its path.',
          ),
        ]),
    ...secretFindings(environment),
  ];
}

function secretFindings(environment: HostMachine['environment']): Finding[] {
  try {
    readTokenSecret(environment);
    readProvidedCredentials(environment);
    return [];
  } catch (error) {
    return [failed('settings', error)];
  }
}

/** Checks the free space on the disk of the data folder. If the folder does not exist yet, uses the nearest folder above. */
export function diskFinding(folder: string): Finding {
  const free = freeBytes(folder);
  if (free === undefined)
    return warn('disk', 'The free disk space is unknown.', 'Check that the data folder is on a local disk.');
  const says = `The disk has ${Math.floor(free / MIB).toLocaleString('en-US')} MiB free.`;
  if (free < BAD_BELOW_BYTES) return bad('disk', says, 'Free some space. Forgetting facts works even on a full disk.');
  return free < WARN_BELOW_BYTES ? warn('disk', says, 'Free some space before the disk is full.') : ok('disk', says);
}

function freeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return dirname(folder) === folder ? undefined : freeBytes(dirname(folder));
  }
}
