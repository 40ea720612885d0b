import { CREDENTIAL_SHAPE } from '../../../contract/credential.ts';
import { Failure } from '../../../contract/failure.ts';
import { readProvidedSecret } from './provided-secret.ts';

const SETTINGS = { github: 'HELMDECK_GITHUB_TOKEN' } as const;

/**
 * Reads credentials for external services from the environment, for machines without a keychain. Throws at startup if a
 * credential is invalid.
 */
export function readProvidedCredentials(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const given = readProvidedSecret(environment, setting);
    if (!given) continue;
    if (!CREDENTIAL_SHAPE.test(given.text)) {
      throw new Failure(
        'invalid_config',
        `${given.where} must contain 8 to 1,024 printable ASCII characters without spaces; enter the credential exactly as the service issued it.`,
      );
    }
    found[name] = given.text;
  }
  return found;
}
