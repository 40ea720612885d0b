import { readFileSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';
import { type KeySource, parseKey, type Slot } from './key-source.ts';

const names: Record<Slot, string> = { current: 'HELMDECK_MEMORY_KEY', next: 'HELMDECK_MEMORY_KEY_NEXT' };

/**
 * Keys handed in by whoever starts the program, as hexadecimal text or as the path of a file with it.
 * Undefined when the environment names none. A variable that is set and cannot be honoured stops the start.
 */
export function environmentSource(environment: Readonly<Record<string, string | undefined>>): KeySource | undefined {
  if (environment[names.current] === undefined && environment[`${names.current}_FILE`] === undefined) return undefined;
  const name = environment[names.current] === undefined ? `${names.current}_FILE` : names.current;
  return {
    name: `the environment (${name})`,
    createsOnFirstStart: false,
    async read(slot) {
      const direct = environment[names[slot]];
      if (direct !== undefined) return { at: 'found', key: parseKey(direct, names[slot]) };
      const file = environment[`${names[slot]}_FILE`];
      if (file === undefined) return { at: 'absent' };
      return { at: 'found', key: parseKey(readKeyFile(file, `${names[slot]}_FILE`), `The file of ${names[slot]}_FILE`) };
    },
  };
}

function readKeyFile(file: string, variable: string): string {
  try {
    // Editors and `>` leave a line end behind; nothing else is forgiven.
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw new Failure('key_unavailable', `The file that ${variable} names cannot be read; check the path and its permissions.`, {
      cause,
    });
  }
}
