import * as z from 'zod';
import { TOKEN_DAYS } from './limits.ts';
import { DEFAULT_SCOPES, TOKEN_SCOPES } from './names.ts';
import { flag, inputObject, lazy, noInput, notTextError, type SchemaOutput, Time, wholeNumber } from './schema.ts';

export type TokenScope = (typeof TOKEN_SCOPES)[number];

const subjectShape = 'must have 1 to 128 printable ASCII characters without colons and spaces; choose another';
const clientShape = 'must have 1 to 64 letters, digits, spaces, ".", "_" or "-", and not only spaces; choose another';
const idShape = 'must have 1 to 128 printable ASCII characters without spaces; copy it from the list of tokens';
const scopesShape = `must be a list of scopes from ${TOKEN_SCOPES.join(', ')}; write a JSON array`;
const scopeShape = `must be one of ${TOKEN_SCOPES.join(', ')}; leave out other scopes`;
const timeShape = 'must be in seconds since 1970; write it as a JSON number';
const ownNameShape = 'is a name that Helmdeck Memory uses for its own writes; choose another';
const nameShape = 'must have 1 to 64 visible characters; choose another';

export const Subject = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[!-9;-~]{1,128}$/, { error: subjectShape, abort: true })
    .refine((subject) => subject !== 'unknown', { error: 'is reserved for requests without a subject; choose another' }),
);

export const isSubject = (value: unknown): value is string => Subject().safeParse(value).success;

const Client = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[A-Za-z0-9 ._-]{1,64}$/, { error: clientShape, abort: true })
    .refine((client) => client.trim() !== '', { error: clientShape }),
);

/**
 * Client names that are recorded for the owner's own writes. Tokens must not have these names, because their writes would look
 * like the owner's.
 */
const OWN_NAMES: ReadonlySet<string> = new Set(['commandline', 'window', 'packtest', 'unreadableauthor']);

const isOwnName = (client: string): boolean => OWN_NAMES.has(client.toLowerCase().replaceAll(/[ ._-]/g, ''));

const TokenId = lazy(() => z.string({ error: notTextError }).regex(/^[!-~]{1,128}$/, { error: idShape }));

const Scopes = lazy(() => z.array(z.enum(TOKEN_SCOPES, { error: scopeShape }), { error: scopesShape }));

const Seconds = lazy(() => z.number({ error: timeShape }));

export const ISSUER = 'helmdeck';
export const AUDIENCE = 'helmdeck-memory';

const audienceShape = `must be ${AUDIENCE}; correct it or leave it out`;

/** The claims of a token. Claims that are not listed here are ignored. */
export const TokenClaims = lazy(() =>
  z.object({
    iss: z.literal(ISSUER, { error: `must be ${ISSUER}; correct it` }),
    sub: Subject(),
    exp: Seconds(),
    aud: z
      .union([z.literal(AUDIENCE), z.array(z.string()).refine((all) => all.includes(AUDIENCE), { error: audienceShape })], {
        error: audienceShape,
      })
      .exactOptional(),
    nbf: Seconds().exactOptional(),
    iat: Seconds().exactOptional(),
    jti: TokenId().exactOptional(),
    /** The id of the token without which this token is not valid. */
    of: TokenId().exactOptional(),
    client: Client().default('unknown'),
    // The default applies only if the claim is absent. A token with an empty list has no rights.
    scopes: Scopes().default([...DEFAULT_SCOPES]),
    /** Whether the writes of the token wait until the owner accepts them. A token without the claim is not quarantined. */
    quarantine: z.boolean({ error: 'must be true or false; correct it or leave it out' }).exactOptional(),
  }),
);
export type TokenClaims = SchemaOutput<typeof TokenClaims>;

const visibleName = lazy(() => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,64}$/u);

/** The name of a client, as opposed to the names of the owner's own programs. */
export const ClientName = lazy(() => Client().refine((client) => !isOwnName(client), { error: ownNameShape }));

export const MintInput = lazy(() =>
  inputObject(
    {
      name: z
        .string({ error: notTextError })
        .trim()
        .refine((name) => visibleName().test(name), { error: nameShape })
        .describe('A name that helps you recognize the token, such as "OpenClaw on the laptop".'),
      client: ClientName()
        .default('unknown')
        .describe('Name of the program that will use the token. It is shown with each fact that the program writes.'),
      subject: Subject()
        .default('me')
        .describe('The subject whose memory the token gives access to. Tokens with the same subject share one memory.'),
      scopes: Scopes()
        .min(1, { error: 'must have at least one scope; leave the field out for the default scopes' })
        .default([...DEFAULT_SCOPES])
        .describe(`Scopes of the token. If absent, the token gets ${DEFAULT_SCOPES.join(', ')}.`),
      days: wholeNumber(1, TOKEN_DAYS).default(TOKEN_DAYS).describe(`Days until the token expires, at most ${TOKEN_DAYS}.`),
      quarantine: flag()
        .exactOptional()
        .describe(
          'Whether everything that the program writes waits in the Inbox until the owner accepts it. If absent, `true`, unless the program is a client that `connect` recognises or the token has the scope `admin`.',
        ),
    },
    {
      title: 'Create a token',
      description:
        'Creates a token for one of your programs. The token is shown only once and is not stored. Use its id to revoke it.',
    },
  ),
);
export type MintInput = SchemaOutput<typeof MintInput>;

const TokenRecord = lazy(() =>
  z.object({
    id: z.string().describe('Id of the token, needed to revoke the token.'),
    name: z.string().describe('Name that the owner gave the token.'),
    client: z.string().describe('Name of the program for which the token was created.'),
    subject: z.string().describe('The subject whose memory the token gives access to.'),
    scopes: z.array(z.enum(TOKEN_SCOPES)).describe('Scopes of the token.'),
    created_at: Time().describe('When the token was created.'),
    expires_at: Time().describe('When the token expires.'),
    quarantined: z
      .literal(true)
      .exactOptional()
      .describe('Present if everything that the program writes waits in the Inbox until the owner accepts it.'),
  }),
);

export const MintReceipt = lazy(() =>
  TokenRecord().extend({
    token: z.string().describe('The token itself. It cannot be shown again.'),
  }),
);
export type MintReceipt = SchemaOutput<typeof MintReceipt>;

export const TokensInput = lazy(() =>
  noInput('List tokens', 'Lists the tokens that Helmdeck Memory created, newest first. Revoked tokens are not included.'),
);
export type TokensInput = SchemaOutput<typeof TokensInput>;

export const TokenList = lazy(() =>
  z.object({
    tokens: z
      .array(
        TokenRecord().extend({
          last_used_at: Time()
            .exactOptional()
            .describe('When the token was last used, to the minute. Absent if the token was never used.'),
          paused: z.literal(true).exactOptional().describe('Present while the token is paused.'),
        }),
      )
      .describe('Tokens, newest first. An expired token stays in the list for 30 days.'),
  }),
);
export type TokenList = SchemaOutput<typeof TokenList>;

export const RevokeInput = lazy(() =>
  inputObject(
    {
      id: TokenId().describe('Id of the token, from the list of tokens.'),
      unrecorded: flag()
        .default(false)
        .describe(
          'If `true`, an id that is not in the list is accepted too. Needed to revoke a token that another program signed with the same secret; its id is the `jti` claim.',
        ),
    },
    {
      title: 'Revoke a token',
      description:
        'Revokes a token immediately and permanently. It stays revoked even if an older backup is restored. Facts that were written with the token are not deleted.',
    },
  ),
);
export type RevokeInput = SchemaOutput<typeof RevokeInput>;

export const RevokeReceipt = lazy(() => z.object({ id: z.string().describe('Id of the revoked token.') }));
export type RevokeReceipt = SchemaOutput<typeof RevokeReceipt>;
