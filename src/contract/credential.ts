import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, notTextError, Time } from './text.ts';

export const CredentialName = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[a-z][a-z0-9_-]{0,31}$/, {
      error: 'must be the name of a credential, such as github; list them to see which there are',
    })
    .describe('Which one, by the name that packs know it by, such as github.'),
);

/** Goes into a header as it is. The keychains of some systems take no more. */
export const CREDENTIAL_SHAPE = /^[!-~]{8,1024}$/;

export const CredentialsInput = lazy(() =>
  inputObject(
    {},
    { title: 'List credentials', description: 'Which credentials packs can use, and which of them are there. Never a secret.' },
  ),
);

export const CredentialList = lazy(() =>
  z.object({
    credentials: z
      .array(
        z.object({
          name: CredentialName(),
          packs: z.array(z.string()).describe('The packs that use it.'),
          kept_in: z
            .enum(['keychain', 'settings'])
            .exactOptional()
            .describe('Where it is: in the OS keychain, or handed in by a setting; absent while there is none.'),
          set_at: Time().exactOptional().describe('When it was put into the keychain.'),
        }),
      )
      .describe('A to Z.'),
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
          error: 'must have 8 to 1,024 printable ASCII characters, none of them a space; send it as it was given to you',
        })
        .describe('The secret itself. It goes into the OS keychain and is never shown again.'),
    },
    {
      title: 'Set a credential',
      description: 'Puts a secret for a service outside into the OS keychain, for packs that use it. An earlier one is replaced.',
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
      title: 'Drop a credential',
      description: 'Takes a credential out of the OS keychain, and forgets the answers kept with it.',
    },
  ),
);
