import { CREDENTIAL_SHAPE } from '../../../contract/credential.ts';
import { Failure } from '../../../contract/failure.ts';
import { readProvidedSecret } from './provided-secret.ts';

/** Setting names by the names that packs use. */
const SETTINGS = { github: 'HELMDECK_GITHUB_TOKEN' } as const;

/** Credentials for external services, for machines without a keychain. An invalid one stops the start. */
export function readProvidedCredentials(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const given = readProvidedSecret(environment, setting);
    if (!given) continue;
    if (!CREDENTIAL_SHAPE.test(given.text)) {
      throw new Failure(
        'invalid_config',
        `${given.where} must hold 8 to 1,024 printable ASCII characters, none of them a space; put the credential there as it was given to you.`,
      );
    }
    found[name] = given.text;
  }
  return found;
}
