import * as z from 'zod';
import { inputObject, lazy, noInput, notTextError, type SchemaOutput, Time } from './schema.ts';

export const CredentialName = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[a-z][a-z0-9_-]{0,31}$/, {
      error: 'must be the name of a credential, such as `github`; list the credentials to see their names',
    })
    .describe('Name of the credential, such as `github`. Packs refer to the credential by this name.'),
);

/** The allowed form of a secret: printable ASCII for HTTP headers, and short because some OS keychains limit the length. */
export const CREDENTIAL_SHAPE = /^[!-~]{8,1024}$/;

export const CredentialsInput = lazy(() =>
  noInput(
    'List credentials',
    'Lists the credentials that packs can use, and whether each credential is set. The secrets are never shown.',
  ),
);

export const CredentialList = lazy(() =>
  z.object({
    credentials: z
      .array(
        z.object({
          name: CredentialName(),
          packs: z.array(z.string()).describe('Packs that use the credential.'),
          kept_in: z
            .enum(['keychain', 'settings'])
            .exactOptional()
            .describe(
              'Location of the secret. `keychain`: in the OS keychain. `settings`: in a setting. Absent if the credential is not set.',
            ),
          set_at: Time().exactOptional().describe('Time at which the secret was stored in the OS keychain.'),
        }),
      )
      .describe('Credentials in alphabetical order.'),
  }),
);
export type CredentialList = SchemaOutput<typeof CredentialList>;

export const SetCredentialInput = lazy(() =>
  inputObject(
    {
      name: CredentialName(),
      secret: z
        .string({ error: notTextError })
        .regex(CREDENTIAL_SHAPE, {
          error: 'must have 8 to 1,024 printable ASCII characters without spaces; send the secret exactly as you received it',
        })
        .describe('The secret. It is stored in the OS keychain and never shown again.'),
    },
    {
      title: 'Set a credential',
      description:
        'Stores the secret for an external service in the OS keychain, so that packs can use it. Replaces the earlier secret, if there is one.',
    },
  ),
);
export type SetCredentialInput = SchemaOutput<typeof SetCredentialInput>;

export const CredentialReceipt = lazy(() => z.object({ name: CredentialName() }));
export type CredentialReceipt = SchemaOutput<typeof CredentialReceipt>;

export const DropCredentialInput = lazy(() =>
  inputObject(
    { name: CredentialName() },
    {
      title: 'Delete a credential',
      description: 'Deletes the secret from the OS keychain. Also deletes the cached results of packs that used the secret.',
    },
  ),
);
