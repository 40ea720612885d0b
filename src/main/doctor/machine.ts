import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { loadKeychain } from '../../core/crypto/keys/keychain.ts';
import { readProvidedCredentials } from '../../core/crypto/keys/provided-credentials.ts';
import { readTokenSecret } from '../../core/crypto/keys/token-secret.ts';
import type { HostMachine } from '../config/config.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import { isSettingName } from '../config/settings-table.ts';
import { bad, type Finding, ok, refusal, warn } from './finding.ts';

const LEAST_NODE = 24;
const MIB = 1024 * 1024;
const LITTLE_BYTES = 100 * MIB;
const TOO_LITTLE_BYTES = 8 * MIB;

/** What is in the environment besides settings: for the launcher, the bridge, and for finding the settings. */
const BESIDE = new Set(['HELMDECK_CONFIG', 'HELMDECK_NODE', 'HELMDECK_TOKEN', 'HELMDECK_TOKEN_FILE', 'HELMDECK_CLIENT']);

export function nodeFinding(version: string): Finding {
  if (Number(/^v(\d+)/.exec(version)?.[1]) >= LEAST_NODE) return ok('node', `${version}.`);
  return bad('node', `${version} is too old.`, `Get Node ${LEAST_NODE} from https://nodejs.org, or name one with HELMDECK_NODE.`);
}

export async function keychainFinding(load = loadKeychain): Promise<Finding> {
  if (await load()) return ok('keychain', 'Its library is installed.');
  return warn(
    'keychain',
    'Its library is not installed, so no key can be kept there.',
    process.platform === 'linux'
      ? 'Install libsecret (on Debian: libsecret-1-0), or keep the key in a file: helmdeck-memory key init --file.'
      : 'Install the program anew, or keep the key in a file: helmdeck-memory key init --file.',
  );
}

export function settingsFindings({ file, environment }: LoadedSettings, machine: HostMachine): Finding[] {
  const strange = Object.keys(machine.environment).filter(
    (name) => name.startsWith('HELMDECK_') && !isSettingName(name) && !BESIDE.has(name),
  );
  const where = file === undefined ? 'The environment alone; there is no config.json.' : `The environment, and ${file}.`;
  return [
    ok('settings', where),
    ...(strange.length === 0
      ? []
      : [warn('settings', `${strange.join(', ')} is no setting of this program, and is not read.`, 'Check how it is written.')]),
    ...(machine.environment['HELMDECK_MEMORY_KEY'] === undefined
      ? []
      : [
          warn(
            'settings',
            'HELMDECK_MEMORY_KEY holds the key itself, where your other programs can see it.',
            'Put it into a file that only you can read, and name that with HELMDECK_MEMORY_KEY_FILE.',
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
    return [refusal('settings', error)];
  }
}

/** Of the disk that the folder is on, or would be. */
export function diskFinding(folder: string): Finding {
  const free = freeBytes(folder);
  if (free === undefined) return warn('disk', 'It does not say how much is free.', 'Check that the folder is on a local disk.');
  const says = `${Math.floor(free / MIB).toLocaleString('en-US')} MiB are free.`;
  if (free < TOO_LITTLE_BYTES) return bad('disk', says, 'Free some space; forgetting still works on a full disk.');
  return free < LITTLE_BYTES ? warn('disk', says, 'Free some space before it is full.') : ok('disk', says);
}

function freeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return dirname(folder) === folder ? undefined : freeBytes(dirname(folder));
  }
}
