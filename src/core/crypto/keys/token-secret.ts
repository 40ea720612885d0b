import { Failure } from '../../../contract/failure.ts';
import { readProvidedSecret } from './provided-secret.ts';

const LEAST_BYTES = 32;

/**
 * The secret that signs tokens. An operator sets it to sign tokens with another program, too. Undefined if it is not set. Throws if
 * it is too short or not UTF-8, which stops the start.
 */
export function readTokenSecret(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const given = readProvidedSecret(environment, 'HELMDECK_JWT_SECRET');
  // A secret that is not UTF-8 would be decoded differently here than by the program that signs tokens.
  if (!given || (Buffer.byteLength(given.text) >= LEAST_BYTES && !given.text.includes('\uFFFD'))) return given?.text;
  throw new Failure(
    'invalid_config',
    `${given.where} must hold ${LEAST_BYTES} bytes or more of UTF-8 text; put a longer one there, or make one with: openssl rand -hex ${LEAST_BYTES}.`,
  );
}
