import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';

interface HandedIn {
  readonly text: string;
  /** The place to name in messages. The secret itself is never shown. */
  readonly where: string;
}

/** Reads a secret from a variable, or from the file that `<name>_FILE` names. Undefined if neither is set. */
export function readProvidedSecret(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): HandedIn | undefined {
  const direct = environment[name];
  if (direct !== undefined) return { text: direct, where: name };
  const file = environment[`${name}_FILE`];
  return file === undefined ? undefined : { text: read(file, `${name}_FILE`), where: `The file of ${name}_FILE` };
}

function read(file: string, variable: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (cause) {
    throw unreadable(variable, cause);
  }
  try {
    refuseLooseMode(fstatSync(descriptor), variable);
    // Editors and `>` add a newline. Nothing else is trimmed.
    return readFileSync(descriptor, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw cause instanceof Failure ? cause : unreadable(variable, cause);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Follows the rule of OpenSSH for private keys: no other user may read a file that our user owns. A file of root may be readable,
 * because service managers provide secrets that way, but only root may write it. Pipes have no other readers.
 */
function refuseLooseMode(stats: Stats, variable: string): void {
  if (process.platform === 'win32' || !stats.isFile()) return;
  const ours = stats.uid === process.getuid?.();
  if ((ours || stats.uid === 0) && (stats.mode & (ours ? 0o077 : 0o022)) === 0) return;
  throw new Failure(
    'invalid_config',
    ours
      ? `Other users may open the file that ${variable} names. Run chmod 600 on it; if they could read it until now, replace the secret.`
      : `The file that ${variable} names belongs to another user, or others may write it. Let root or the user who runs this program own it, with mode 600.`,
  );
}

const unreadable = (variable: string, cause: unknown): Failure =>
  new Failure('invalid_config', `The file that ${variable} names cannot be read; check the path and its permissions.`, {
    cause,
  });
