import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { TOKEN_DAYS, TOKEN_SCOPES } from './limits.ts';
import { inputObject, flag, notTextError, Time, wholeNumber } from './text.ts';

export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** What a token that names no scope may be used for, and what a new one gets unless its owner says otherwise. */
const USUAL_SCOPES = TOKEN_SCOPES.filter((scope) => scope !== 'admin');

const subjectShape = 'must have 1 to 128 printable ASCII characters, none of them a colon or a space; choose another';
const clientShape = 'must have 1 to 64 letters, digits, spaces, ".", "_" or "-", and not spaces alone; choose another';
const idShape = 'must have 1 to 128 printable ASCII characters without a space; take it from the list of tokens';
const scopesShape = `must be a list of scopes, which are ${TOKEN_SCOPES.join(', ')}; write a JSON array`;
const scopeShape = `must be one of ${TOKEN_SCOPES.join(', ')}; leave out any other`;
const timeShape = 'must be in seconds since 1970; write it as a JSON number';
const ownNameShape = 'is a name that the owner of this memory signs with; choose another';
const nameShape = 'must have 1 to 64 characters, none of them invisible; choose another';

export const Subject = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[!-9;-~]{1,128}$/, { error: subjectShape, abort: true })
    .refine((subject) => subject !== 'unknown', { error: 'is the name of whoever has none; choose another' }),
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

const audienceShape = `must be ${AUDIENCE}; write it so, or leave it out`;

/** What must be so in a token, whoever made it. Claims that are not named here mean nothing to us. */
export const TokenClaims = lazy(() =>
  z.object({
    iss: z.literal(ISSUER, { error: `must be ${ISSUER}; write it so` }),
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
    // An empty list is a list: such a token may do nothing.
    scopes: Scopes().default(USUAL_SCOPES),
  }),
);
export type TokenClaims = SchemaOutput<typeof TokenClaims>;

/** No more of a text is looked at than it may have. */
const seen = lazy(() => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,64}$/u);

export const MintInput = lazy(() =>
  inputObject(
    {
      name: z
        .string({ error: notTextError })
        .trim()
        .refine((name) => seen().test(name), { error: nameShape })
        .describe('What its owner calls the token, such as "OpenClaw on the laptop".'),
      client: Client()
        .refine((client) => !isOwnName(client), { error: ownNameShape })
        .default('unknown')
        .describe('The program that will use it, as it is shown beside what it writes.'),
      subject: Subject().default('me').describe('Whose memory it opens. Tokens with one subject share one memory.'),
      scopes: Scopes()
        .min(1, { error: 'must name at least one scope; leave the field out for the usual ones' })
        .default(USUAL_SCOPES)
        .describe('What it may be used for; everything but admin unless told.'),
      days: wholeNumber(1, TOKEN_DAYS).default(TOKEN_DAYS).describe(`Days until it expires, at most ${TOKEN_DAYS}.`),
    },
    {
      title: 'Make a token',
      description:
        'Makes a token for one program of the owner. The token is shown once and kept nowhere; its record can be revoked.',
    },
  ),
);
export type MintInput = SchemaOutput<typeof MintInput>;

const TokenRecord = lazy(() =>
  z.object({
    id: z.string().describe('By this it is revoked.'),
    name: z.string().describe('What its owner calls it.'),
    client: z.string().describe('The program that it was made for.'),
    subject: z.string().describe('Whose memory it opens.'),
    scopes: z.array(z.enum(TOKEN_SCOPES)).describe('What it may be used for.'),
    created_at: Time().describe('When it was made.'),
    expires_at: Time().describe('When it expires.'),
  }),
);

export const MintReceipt = lazy(() =>
  TokenRecord().extend({
    token: z.string().describe('The token itself. It cannot be shown again.'),
  }),
);
export type MintReceipt = SchemaOutput<typeof MintReceipt>;

export const TokensInput = lazy(() =>
  inputObject({}, { title: 'List tokens', description: 'Every token that was made here and not revoked, newest first.' }),
);
export type TokensInput = SchemaOutput<typeof TokensInput>;

export const TokenList = lazy(() =>
  z.object({
    tokens: z
      .array(
        TokenRecord().extend({
          last_used_at: Time().exactOptional().describe('When it was last used, to the minute; absent if it never was.'),
          paused: z.literal(true).exactOptional().describe('Present while it is refused, until it is let in again.'),
        }),
      )
      .describe('Tokens made here, newest first; an expired one stays in the list for 30 days.'),
  }),
);
export type TokenList = SchemaOutput<typeof TokenList>;

export const RevokeInput = lazy(() =>
  inputObject(
    {
      id: TokenId().describe('The token, by its id in the list of tokens.'),
      unrecorded: flag()
        .default(false)
        .describe('true revokes an id that is not in the list: the jti of a token that was made elsewhere with the same secret.'),
    },
    {
      title: 'Revoke a token',
      description: 'Makes a token useless for good, at once and also after a restore. What it was used for stays.',
    },
  ),
);
export type RevokeInput = SchemaOutput<typeof RevokeInput>;

export const RevokeReceipt = lazy(() => z.object({ id: z.string().describe('The token that is of no use any more.') }));
export type RevokeReceipt = SchemaOutput<typeof RevokeReceipt>;
