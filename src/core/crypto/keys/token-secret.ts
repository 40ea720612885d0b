import { Failure } from '../../../contract/failure.ts';
import { readProvidedSecret } from './provided-secret.ts';

const MIN_BYTES = 32;

/**
 * Reads the secret that signs tokens. The operator can provide this secret at startup, so that other programs of the operator can
 * sign tokens too. Undefined if the environment provides no secret. Throws if the secret is invalid.
 */
export function readTokenSecret(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const given = readProvidedSecret(environment, 'HELMDECK_JWT_SECRET');
  // Text that is not UTF-8 is rejected, because decoding changes it. The decoded secret would then differ from the secret with
  // which other programs sign tokens.
  if (!given || (Buffer.byteLength(given.text) >= MIN_BYTES && !given.text.includes('\uFFFD'))) return given?.text;
  throw new Failure(
    'invalid_config',
    `${given.where} must contain at least ${MIN_BYTES} bytes of UTF-8 text; enter a longer secret there, or create one with: openssl rand -hex ${MIN_BYTES}.`,
  );
}
