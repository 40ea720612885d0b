import { readFileSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';

const NAME = 'HELMDECK_JWT_SECRET';
const LEAST_BYTES = 32;

/**
 * The secret that tokens are signed with, handed in by whoever starts the program so that they can sign tokens too. Undefined
 * when the environment names none. One that is set and cannot be honoured stops the start.
 */
export function tokenSecret(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const direct = environment[NAME];
  if (direct !== undefined) return checked(direct, NAME);
  const file = environment[`${NAME}_FILE`];
  return file === undefined ? undefined : checked(read(file), `The file of ${NAME}_FILE`);
}

/** What is not UTF-8 would be another secret here than where tokens are signed. */
function checked(secret: string, where: string): string {
  if (Buffer.byteLength(secret) >= LEAST_BYTES && !secret.includes('\uFFFD')) return secret;
  throw new Failure(
    'key_unavailable',
    `${where} must hold ${LEAST_BYTES} bytes or more of UTF-8 text; put a longer one there, or make one with: openssl rand -hex ${LEAST_BYTES}.`,
  );
}

function read(file: string): string {
  try {
    // Editors and `>` leave a line end behind; nothing else is forgiven.
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw new Failure('key_unavailable', `The file that ${NAME}_FILE names cannot be read; check the path and its permissions.`, {
      cause,
    });
  }
}
