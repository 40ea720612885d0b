import type { PackHook } from './hook.ts';
import type { Credential } from './pack.ts';

/** The owner's secrets for services outside, by name; they come from the keychain, and no pack can list them. */
export interface CredentialProvider {
  read(name: string): Promise<Credential | undefined>;
}

/** Hands a pack the one credential that it names. */
export const credentialHook = (credentials: CredentialProvider): PackHook => ({
  before: ({ pack, context }) =>
    pack.credential === undefined
      ? undefined
      : credentials.read(pack.credential).then((credential) => {
          if (credential) context.credential = credential;
          return undefined;
        }),
});
