import type { PackHook } from './hook.ts';
import type { Credential } from './pack.ts';

/** The owner's credentials for external services, by name. Packs cannot list them. */
export interface CredentialProvider {
  read(name: string): Promise<Credential | undefined>;
}

/** Gives a pack the one credential that it names. */
export const credentialHook = (credentials: CredentialProvider): PackHook => ({
  before: ({ pack, context }) =>
    pack.credential === undefined
      ? undefined
      : credentials.read(pack.credential).then((credential) => {
          if (credential) context.credential = credential;
          return undefined;
        }),
});
