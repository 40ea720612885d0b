import { type KeySource, parseKey, type KeySlot } from './key-source.ts';
import { readProvidedSecret } from './provided-secret.ts';

const names: Record<KeySlot, string> = { current: 'HELMDECK_MEMORY_KEY', next: 'HELMDECK_MEMORY_KEY_NEXT' };

/** Keys from environment variables, as hexadecimal text or as the path of a file. Undefined if none is set. An invalid one stops the start. */
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
