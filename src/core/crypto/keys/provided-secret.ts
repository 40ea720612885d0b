import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';

interface ProvidedSecret {
  readonly text: string;
  /** Where the secret came from, for messages. Messages never contain the secret itself. */
  readonly where: string;
}

/**
 * Reads a secret from the environment variable `name`, or from the file whose path is in `<name>_FILE`. Undefined if neither
 * variable is set.
 */
export function readProvidedSecret(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): ProvidedSecret | undefined {
  const direct = environment[name];
  if (direct !== undefined) return { text: direct, where: name };
  const file = environment[`${name}_FILE`];
  return file === undefined ? undefined : { text: readSecretFile(file, `${name}_FILE`), where: `The file named by ${name}_FILE` };
}

/** Reads a file that contains a secret. `variable` is the setting that names the file, for messages. */
export function readSecretFile(file: string, variable: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (cause) {
    throw unreadable(variable, cause);
  }
  try {
    refuseLooseMode(fstatSync(descriptor), variable);
    // Remove only the final newline, which editors and `>` add.
    return readFileSync(descriptor, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw cause instanceof Failure ? cause : unreadable(variable, cause);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Rejects a file that other users could read or change, by OpenSSH's rule for private keys: other users must have no access to a
 * file of this user. A file of root can be readable, because service managers provide secrets that way, but only root can be
 * allowed to change it. Pipes are not checked, because no one else can read them.
 */
function refuseLooseMode(stats: Stats, variable: string): void {
  if (process.platform === 'win32' || !stats.isFile()) return;
  const ours = stats.uid === process.getuid?.();
  if ((ours || stats.uid === 0) && (stats.mode & (ours ? 0o077 : 0o022)) === 0) return;
  throw new Failure(
    'invalid_config',
    ours
      ? `Other users have access to the file that ${variable} names. Run chmod 600 on the file, and replace the secret if other users could read it.`
      : `The file that ${variable} names belongs to another user, or other users can change it. Make root or the user who runs Helmdeck Memory its owner, with mode 600.`,
  );
}

const unreadable = (variable: string, cause: unknown): Failure =>
  new Failure('invalid_config', `The file that ${variable} names cannot be read; check the path and its permissions.`, {
    cause,
  });
