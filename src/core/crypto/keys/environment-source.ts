import { type KeySource, parseKey, type KeySlot } from './key-source.ts';
import { readProvidedSecret } from './provided-secret.ts';

const names: Record<KeySlot, string> = { current: 'HELMDECK_MEMORY_KEY', next: 'HELMDECK_MEMORY_KEY_NEXT' };

/**
 * Returns a source of keys from environment variables, which contain a hexadecimal key or the path of a file. Undefined if
 * neither variable is set. If a variable is invalid, reading it fails and startup stops.
 */
export function environmentSource(environment: Readonly<Record<string, string | undefined>>): KeySource | undefined {
  if (environment[names.current] === undefined && environment[`${names.current}_FILE`] === undefined) return undefined;
  const name = environment[names.current] === undefined ? `${names.current}_FILE` : names.current;
  return {
    name: `the environment (${name})`,
    createsOnFirstStart: false,
    async read(slot) {
      const given = readProvidedSecret(environment, names[slot]);
      return given ? { at: 'found', key: parseKey(given.text, given.where, 'invalid_config') } : { at: 'absent' };
    },
  };
}
