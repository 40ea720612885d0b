import { readFileSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';

interface HandedIn {
  readonly text: string;
  /** How it is told to the owner; what stood there never is. */
  readonly where: string;
}

/** A secret handed in by whoever starts the program: itself, or the path of a file with it. Undefined when neither is named. */
export function handedIn(environment: Readonly<Record<string, string | undefined>>, name: string): HandedIn | undefined {
  const direct = environment[name];
  if (direct !== undefined) return { text: direct, where: name };
  const file = environment[`${name}_FILE`];
  return file === undefined ? undefined : { text: read(file, `${name}_FILE`), where: `The file of ${name}_FILE` };
}

function read(file: string, variable: string): string {
  try {
    // Editors and `>` leave a line end behind; nothing else is forgiven.
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw new Failure('key_unavailable', `The file that ${variable} names cannot be read; check the path and its permissions.`, {
      cause,
    });
  }
}
