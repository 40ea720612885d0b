import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';

interface HandedIn {
  readonly text: string;
  /** How it is told to the owner; what stood there never is. */
  readonly where: string;
}

/** A secret handed in by whoever starts the program: itself, or the path of a file with it. Undefined when neither is named. */
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
    // Editors and `>` leave a line end behind; nothing else is forgiven.
    return readFileSync(descriptor, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw cause instanceof Failure ? cause : unreadable(variable, cause);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * As OpenSSH treats private keys: a file of ours that other users can read is no secret. A file of root's may be readable, since
 * systems hand secrets to services that way, but only root may write it. A pipe has no other readers.
 */
function refuseLooseMode(stats: Stats, variable: string): void {
  if (process.platform === 'win32' || !stats.isFile()) return;
  const ours = stats.uid === process.getuid?.();
  if ((ours || stats.uid === 0) && (stats.mode & (ours ? 0o077 : 0o022)) === 0) return;
  throw new Failure(
    'key_unavailable',
    ours
      ? `Other users may open the file that ${variable} names. Run chmod 600 on it; if they could read it until now, replace the secret.`
      : `The file that ${variable} names belongs to another user, or others may write it. Let root or the user who runs this program own it, with mode 600.`,
  );
}

const unreadable = (variable: string, cause: unknown): Failure =>
  new Failure('key_unavailable', `The file that ${variable} names cannot be read; check the path and its permissions.`, {
    cause,
  });
