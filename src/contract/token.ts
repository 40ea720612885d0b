import * as z from 'zod';
import { TOKEN_DAYS, TOKEN_SCOPES } from './limits.ts';
import { flag, inputObject, lazy, noInput, notTextError, type SchemaOutput, Time, wholeNumber } from './schema.ts';

export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** The scopes of a token without a scopes claim, and the default for new tokens. */
const DEFAULT_SCOPES = TOKEN_SCOPES.filter((scope) => scope !== 'admin');

const subjectShape = 'must have 1 to 128 printable ASCII characters without colons and spaces; choose another';
const clientShape = 'must have 1 to 64 letters, digits, spaces, ".", "_" or "-", and not only spaces; choose another';
const idShape = 'must have 1 to 128 printable ASCII characters without spaces; copy it from the list of tokens';
const scopesShape = `must be a list of scopes from ${TOKEN_SCOPES.join(', ')}; write a JSON array`;
const scopeShape = `must be one of ${TOKEN_SCOPES.join(', ')}; leave out other scopes`;
const timeShape = 'must be in seconds since 1970; write it as a JSON number';
const ownNameShape = 'is a name that the program signs with itself; choose another';
const nameShape = 'must have 1 to 64 visible characters; choose another';

export const Subject = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[!-9;-~]{1,128}$/, { error: subjectShape, abort: true })
    .refine((subject) => subject !== 'unknown', { error: 'is the name for missing subjects; choose another' }),
);

export const isSubject = (value: unknown): value is string => Subject().safeParse(value).success;

const Client = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[A-Za-z0-9 ._-]{1,64}$/, { error: clientShape, abort: true })
    .refine((client) => client.trim() !== '', { error: clientShape }),
);

/** The names that the product itself signs with. An agent's token must not bear one, or its writes would pass for the owner's. */
const OWN_NAMES: ReadonlySet<string> = new Set(['commandline', 'window', 'packtest']);

const isOwnName = (client: string): boolean => OWN_NAMES.has(client.toLowerCase().replaceAll(/[ ._-]/g, ''));

const TokenId = lazy(() => z.string({ error: notTextError }).regex(/^[!-~]{1,128}$/, { error: idShape }));

const Scopes = lazy(() => z.array(z.enum(TOKEN_SCOPES, { error: scopeShape }), { error: scopesShape }));

const Seconds = lazy(() => z.number({ error: timeShape }));

export const ISSUER = 'helmdeck';
export const AUDIENCE = 'helmdeck-memory';

const audienceShape = `must be ${AUDIENCE}; correct it or leave it out`;

/** The claims of every accepted token. Other claims are ignored. */
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
    client: Client().default('unknown'),
    // An empty list does not mean the default: such a token has no rights.
    scopes: Scopes().default(DEFAULT_SCOPES),
  }),
);
export type TokenClaims = SchemaOutput<typeof TokenClaims>;

/** The length limit is part of the pattern, so a long text is refused early. */
const visibleName = lazy(() => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,64}$/u);

export const MintInput = lazy(() =>
  inputObject(
    {
      name: z
        .string({ error: notTextError })
        .trim()
        .refine((name) => visibleName().test(name), { error: nameShape })
        .describe('Name of the token for its owner, such as "OpenClaw on the laptop".'),
      client: Client()
        .refine((client) => !isOwnName(client), { error: ownNameShape })
        .default('unknown')
        .describe('The program that will use the token. Shown with the facts that it writes.'),
      subject: Subject()
        .default('me')
        .describe('The subject whose memory the token opens. Tokens with the same subject share one memory.'),
      scopes: Scopes()
        .min(1, { error: 'must name at least one scope; leave the field out for the default scopes' })
        .default(DEFAULT_SCOPES)
        .describe('Scopes of the token. Default: all except admin.'),
      days: wholeNumber(1, TOKEN_DAYS).default(TOKEN_DAYS).describe(`Days until the token expires, at most ${TOKEN_DAYS}.`),
    },
    {
      title: 'Create a token',
      description:
        'Creates a token for one of your programs. The token is shown once and not stored. It can be revoked by its id.',
    },
  ),
);
export type MintInput = SchemaOutput<typeof MintInput>;

const TokenRecord = lazy(() =>
  z.object({
    id: z.string().describe('Id of the token; use it to revoke the token.'),
    name: z.string().describe('Name of the token for its owner.'),
    client: z.string().describe('The program that the token was created for.'),
    subject: z.string().describe('The subject whose memory the token opens.'),
    scopes: z.array(z.enum(TOKEN_SCOPES)).describe('Scopes of the token.'),
    created_at: Time().describe('When the token was created.'),
    expires_at: Time().describe('When the token expires.'),
  }),
);

export const MintReceipt = lazy(() =>
  TokenRecord().extend({
    token: z.string().describe('The token. It cannot be shown again.'),
  }),
);
export type MintReceipt = SchemaOutput<typeof MintReceipt>;

export const TokensInput = lazy(() =>
  noInput('List tokens', 'Lists the tokens that this program created and that are not revoked, newest first.'),
);
export type TokensInput = SchemaOutput<typeof TokensInput>;

export const TokenList = lazy(() =>
  z.object({
    tokens: z
      .array(
        TokenRecord().extend({
          last_used_at: Time()
            .exactOptional()
            .describe('When the token was last used, to the minute. Absent if it was never used.'),
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
          'true also accepts an id that is not in the list: the jti of a token that another program signed with the same secret.',
        ),
    },
    {
      title: 'Revoke a token',
      description:
        'Revokes a token immediately and permanently, even if an older backup is restored. Facts written with the token stay.',
    },
  ),
);
export type RevokeInput = SchemaOutput<typeof RevokeInput>;

export const RevokeReceipt = lazy(() => z.object({ id: z.string().describe('Id of the revoked token.') }));
export type RevokeReceipt = SchemaOutput<typeof RevokeReceipt>;
