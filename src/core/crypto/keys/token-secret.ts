import { Failure } from '../../../contract/failure.ts';
import { readProvidedSecret } from './provided-secret.ts';

const LEAST_BYTES = 32;

/**
 * The secret that tokens are signed with, handed in by whoever starts the program so that they can sign tokens too. Undefined
 * when the environment names none. One that is set and cannot be honoured stops the start.
 */
export function readTokenSecret(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const given = readProvidedSecret(environment, 'HELMDECK_JWT_SECRET');
  // What is not UTF-8 would be another secret here than where tokens are signed.
  if (!given || (Buffer.byteLength(given.text) >= LEAST_BYTES && !given.text.includes('\uFFFD'))) return given?.text;
  throw new Failure(
    'invalid_config',
    `${given.where} must hold ${LEAST_BYTES} bytes or more of UTF-8 text; put a longer one there, or make one with: openssl rand -hex ${LEAST_BYTES}.`,
  );
}
