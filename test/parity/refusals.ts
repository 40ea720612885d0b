/** Inputs that every wire must refuse, with the same message. */
export interface Refusal {
  readonly why: string;
  readonly operation: string;
  readonly input: unknown;
  readonly code: string;
  readonly says: RegExp;
  /** The list of fields in the message differs between wires. */
  readonly lists?: true;
}

const newFact = { key: 'refused', value: 'v' };
const many = (count: number, of = (n: number): string => `t${n}`): string[] => Array.from({ length: count }, (_, n) => of(n));
/** An own property. In an object literal, `__proto__` would set the prototype. */
const withOwnProto = (field: object): object =>
  JSON.parse(`{"__proto__":{"admin":true},${JSON.stringify(field).slice(1)}`) as object;

/** An invalid token in the format of a real one. */
const credential = `ghp_${'a1B2c3D4e5'.repeat(3)}F6g7h8`;

const LIFETIME = /^ttl_seconds must be 0 or a whole number of seconds from 3600 to 31536000; send it as a JSON number\.$/;
const NO_LIFETIME =
  /^ttl_seconds must be 0 or .*; send it as a JSON number; if the field is optional, leave it out instead of sending null\.$/;
const SCOPE = /^scope must say what to forget; send one of all, facts, packs, .* or client:<name>\.$/;
const UNKNOWN_KEY = /^No fact is stored under this key; look up the key/;
const UNSEEN = /^key contains an invisible or control character; remove it\.$/;
const UNKNOWN_FIELD = /^The request has an unknown field; send only /;

type Case = readonly [why: string, value: unknown, says: RegExp];

const field = (name: string, cases: readonly Case[]): Refusal[] =>
  cases.map(([why, value, says]) => ({
    why: `${name}: ${why}`,
    operation: 'remember',
    input: { ...newFact, [name]: value },
    code: 'invalid_input',
    says,
  }));

const ask = (operation: string, code: string, cases: readonly Case[]): Refusal[] =>
  cases.map(([why, input, says]) => ({ why: `${operation}: ${why}`, operation, input, code, says }));

const keys = field('key', [
  ['nothing', undefined, /^key is missing; send it as text\.$/],
  [
    'null',
    null,
    /^key must be text; send it as a JSON string; if the field is optional, leave it out instead of sending null\.$/,
  ],
  ['a number', 7, /^key must be text;/],
  ['an empty text', '', /^key is missing or blank; send a short, stable name/],
  ['blanks', ' \t\n ', /^key is missing or blank;/],
  ['513 bytes', 'a'.repeat(513), /^key is longer than 512 bytes; shorten it/],
  ['513 bytes in 257 characters', `a${'ü'.repeat(256)}`, /^key is longer than 512 bytes;/],
  ['a decomposed accent', 'cafe\u0301', /^key is not in Unicode normalization form C \(NFC\); normalize it to NFC first\.$/],
  ['the Ångström sign', '\u212b', /^key is not in Unicode normalization form C \(NFC\);/],
  ['NUL', 'a\0b', UNSEEN],
  ['a line feed inside', 'a\nb', UNSEEN],
  ['a C1 control', 'a\u0085b', UNSEEN],
  ['a zero-width space', 'a\u200bb', UNSEEN],
  ['a right-to-left override', 'a\u202eb', UNSEEN],
  ['a soft hyphen', 'a\u00adb', UNSEEN],
  ['half a surrogate pair', 'a\ud800b', UNSEEN],
  ['a line separator', 'a\u2028b', UNSEEN],
  ['a paragraph separator', 'a\u2029b', UNSEEN],
  ['the prefix of pack runs', 'pack_history/x', /^key begins with pack_history\/ or .* which is reserved; choose another key\.$/],
  ['the prefix of pipeline runs, in capitals', 'PIPELINE_HISTORY/x', /^key begins with/],
  ['the prefix of plans alone', 'plan_history/', /^key begins with/],
  ['the prefix of pack runs, in full width', 'ｐａｃｋ＿ｈｉｓｔｏｒｙ／x', /^key begins with/],
]);

const values = field('value', [
  ['nothing', undefined, /^value is missing; send it as text\.$/],
  [
    'null',
    null,
    /^value must be text; send it as a JSON string; if the field is optional, leave it out instead of sending null\.$/,
  ],
  ['a number', 7, /^value must be text;/],
  ['an object', { editor: 'Helix' }, /^value must be text;/],
  ['an empty text', '', /^value is missing or blank; send the text to remember\.$/],
  ['blanks', ' \n\u00a0 ', /^value is missing or blank;/],
  ['64 KiB and a byte', 'a'.repeat(65_537), /^value is longer than 64 KiB; store a summary here/],
  ['64 KiB and a byte in fewer characters', `a${'ü'.repeat(32_768)}`, /^value is longer than 64 KiB;/],
  ['half a surrogate pair', 'a\udc00b', /^value contains half of a surrogate pair; send well-formed Unicode\.$/],
]);

const SHAPE = /^category must have 1 to 64 characters of a-z, 0-9, "_", "\." and "-" .* choose a simpler one\.$/;
const ENGINE = /^category is reserved; choose another category\.$/;

const categories = field('category', [
  ['null', null, /^category must be text; .*; if the field is optional, leave it out instead of sending null\.$/],
  ['a number', 7, /^category must be text;/],
  ['an empty text', '', SHAPE],
  ['blanks', '  ', SHAPE],
  ['65 characters', 'a'.repeat(65), SHAPE],
  ['65 characters of two units each', '\u{1d41a}'.repeat(65), SHAPE],
  ['a space inside', 'my prefs', SHAPE],
  ['a leading hyphen', '-prefs', SHAPE],
  ['a slash', 'a/b', SHAPE],
  ['an accent', 'préférences', SHAPE],
  ['a line feed inside', 'a\nb', SHAPE],
  ['pack runs', 'pack_history', ENGINE],
  ['pipeline runs', 'pipeline_history', ENGINE],
  ['plans, in capitals', 'PLAN_HISTORY', ENGINE],
  ['the cache, in full width', ' ｃａｃｈｅ ', ENGINE],
]);

const tags = field('tags', [
  [
    'null',
    null,
    /^tags must be a list of texts; send a JSON array; if the field is optional, leave it out instead of sending null\.$/,
  ],
  ['a text', 'frontend', /^tags must be a list of texts;/],
  ['33', many(33), /^tags must have at most 32 items; send only the tags that you would search for\.$/],
  ['33 times the same', many(33, () => 't'), /^tags must have at most 32 items;/],
  ['a number in the list', ['a', 7], /^tags\.1 must be text;/],
  ['an empty tag', [''], /^tags\.0 must have 1 to 64 characters; shorten it or leave it out\.$/],
  ['a blank tag', ['a', ' '], /^tags\.1 must have 1 to 64 characters;/],
  ['65 characters', ['a'.repeat(65)], /^tags\.0 must have 1 to 64 characters;/],
  ['65 characters of two units each', ['🎉'.repeat(65)], /^tags\.0 must have 1 to 64 characters;/],
  ['NUL', ['a\0'], /^tags\.0 contains an invisible or control character;/],
  ['a zero-width joiner', ['a', 'a\u200db'], /^tags\.1 contains an invisible or control character;/],
  ['a decomposed accent', ['cafe\u0301'], /^tags\.0 is not in Unicode normalization form C \(NFC\);/],
]);

const lifetimes = field(
  'ttl_seconds',
  [1, 3599, 31_536_001, -1, -3600, 3600.5, 18_446_747_674, 2 ** 53, 1e300, '3600', '', true, false, null, [3600], {}].map(
    (value) => [JSON.stringify(value), value, value === null ? NO_LIFETIME : LIFETIME] as const,
  ),
);

const wholes: Refusal[] = ask('remember', 'invalid_input', [
  ['a list', [newFact], /^The request must be a JSON object; send it with key, value/],
  ['a text', 'key', /^The request must be a JSON object;/],
  ['null', null, /^The request must be a JSON object;/],
  ['an unknown field', { ...newFact, ttl: 3600 }, UNKNOWN_FIELD],
  ['a namespace field', { ...newFact, namespace: 'other' }, UNKNOWN_FIELD],
  ['a subject field', { ...newFact, subject: 'other' }, UNKNOWN_FIELD],
  ['a session field', { ...newFact, session: 's' }, UNKNOWN_FIELD],
  ['a planted prototype', withOwnProto(newFact), UNKNOWN_FIELD],
  ['a planted constructor', { ...newFact, constructor: { prototype: {} } }, UNKNOWN_FIELD],
]).map((one) => ({ ...one, lists: true }));

const VAULT = (name: string): RegExp => new RegExp(`^${name} looks like .*; store it in a password manager or vault, and`);

const secrets = ask('remember', 'invalid_input', [
  ['a credential as the value', { ...newFact, value: `the token is ${credential}` }, VAULT('value')],
  ['a credential in the key', { ...newFact, key: `tokens/${credential}` }, VAULT('key')],
  ['a credential for a tag', { ...newFact, tags: ['ci', credential] }, VAULT('tags')],
  ['a credential for a category', { ...newFact, category: `sbp_${'93f8a1c0'.repeat(5)}` }, VAULT('category')],
  ['a password under a revealing key', { key: 'wifi/password', value: 'Tr0ub4dor33' }, VAULT('value')],
]);

/** The fact `there` exists. */
const others: Refusal[] = [
  ...ask('recall', 'invalid_input', [
    ['a blank key', { key: ' ' }, /^key is missing or blank;/],
    ['513 bytes', { key: 'a'.repeat(513) }, /^key is longer than 512 bytes;/],
    ['an invisible character', { key: 'there\u200b' }, UNSEEN],
    ['the key of a pack run', { key: 'pack_history/x/1' }, /^key begins with/],
    ['a number', { key: 7 }, /^key must be text;/],
  ]),
  ...ask('history', 'invalid_input', [['a blank key', { key: '' }, /^key is missing or blank;/]]),
  ...['recall', 'history', 'patch'].flatMap((operation) =>
    ask(operation, 'invalid_input', [
      ['no key', {}, /^key is missing; send it as text\.$/],
      ['a namespace field', { key: 'there', namespace: 'other' }, UNKNOWN_FIELD],
    ]).map((one) => ({ ...one, lists: true as const })),
  ),
  ...['recall', 'history'].flatMap((operation) =>
    ask(operation, 'not_found', [
      ['an unknown key', { key: 'nothing' }, UNKNOWN_KEY],
      ['another letter case', { key: 'There' }, UNKNOWN_KEY],
      ['a pattern', { key: 'the%' }, UNKNOWN_KEY],
      ['the name of a property', { key: '__proto__' }, UNKNOWN_KEY],
    ]),
  ),
  ...ask('patch', 'not_found', [
    ['an unknown key', { key: 'nothing', ttl_seconds: 3600 }, UNKNOWN_KEY],
    ['a category for an unknown key', { key: 'nothing', category: 'x' }, UNKNOWN_KEY],
  ]),
  ...ask('patch', 'invalid_input', [
    ['a lifetime under an hour', { key: 'there', ttl_seconds: 3599 }, LIFETIME],
    ['a lifetime over a year', { key: 'there', ttl_seconds: 31_536_001 }, LIFETIME],
    ['a lifetime as text', { key: 'there', ttl_seconds: '3600' }, LIFETIME],
    ['null for a lifetime', { key: 'there', ttl_seconds: null }, NO_LIFETIME],
    ['a reserved category', { key: 'there', category: 'Cache' }, ENGINE],
    ['33 tags', { key: 'there', tags: many(33) }, /^tags must have at most 32 items;/],
    ['a credential for a tag', { key: 'there', tags: [credential] }, VAULT('tags')],
  ]),
  ...ask('patch', 'invalid_input', [['a value', { key: 'there', value: 'x' }, UNKNOWN_FIELD]]).map((one) => ({
    ...one,
    lists: true as const,
  })),
  ...ask('list', 'invalid_input', [
    ['zero', { limit: 0 }, /^limit must be a whole number from 1 to 200; send it as a number\.$/],
    ['201', { limit: 201 }, /^limit must be a whole number from 1 to 200;/],
    ['one and a half', { limit: 1.5 }, /^limit must be a whole number from 1 to 200;/],
    ['an unknown order', { sort: 'size' }, /^sort must be `updated` or `expires`; send one of them\.$/],
    ['an expiry within zero seconds', { expiring_within: 0 }, /^expiring_within must be a whole number from 1 to 31536000;/],
    ['an expiry within more than a year', { expiring_within: 31_536_001 }, /^expiring_within must be a whole number/],
    ['a category that is too long', { category: 'x'.repeat(129) }, SHAPE],
    [
      'a cursor that is a text',
      { cursor: 'x' },
      /^cursor does not belong to this list; send the `next_cursor` of the previous page unchanged/,
    ],
    ['a cursor of another order', { cursor: cursor('expires', 1, 1) }, /^cursor does not belong to this list;/],
    ['a cursor with a text for a row', { cursor: cursor('updated', 1, '1 OR 1=1') }, /^cursor does not belong to this list;/],
    [
      'a cursor of 1025 characters',
      { cursor: 'x'.repeat(1025) },
      /^cursor is not a valid cursor; send `next_cursor` unchanged\.$/,
    ],
    ['a namespace field', { namespace: 'other' }, UNKNOWN_FIELD],
  ]),
  ...ask('activity', 'invalid_input', [
    ['zero', { limit: 0 }, /^limit must be a whole number from 1 to 200;/],
    ['a cursor of another order', { cursor: cursor('oldest', 1, 1) }, /^cursor does not belong to this list;/],
  ]),
  ...ask('brief', 'invalid_input', [
    ['a prompt that is no text', { prompt: 7 }, /^prompt must be text; send it as a JSON string\.$/],
    ['a session of 201 characters', { session: 'x'.repeat(201) }, /^session must have 1 to 200 printable characters;/],
    ['an invisible character in the session', { session: 'a\u200bb' }, /^session must have 1 to 200 printable characters;/],
    ['a flag that is a text', { repeat: 'yes' }, /^repeat must be true or false; send it without quotes\.$/],
  ]),
  ...ask('search', 'invalid_input', [
    ['no query', {}, /^query is missing; send it as text\.$/],
    [
      'null for words',
      { query: null },
      /^query must be text; send it as a JSON string; if the field is optional, leave it out instead of sending null\.$/,
    ],
    [
      'null for a limit',
      { query: 'x', limit: null },
      /^limit must be a whole number from 1 to 100; send it as a number; if the field is optional, leave it out instead of sending null\.$/,
    ],
    ['1001 characters', { query: 'x'.repeat(1001) }, /^query is longer than 1000 characters; send only the important words\.$/],
    ['zero', { query: 'x', limit: 0 }, /^limit must be a whole number from 1 to 100;/],
    ['101', { query: 'x', limit: 101 }, /^limit must be a whole number from 1 to 100;/],
    ['another mode', { query: 'x', mode: 'vec' }, /^mode must be `auto`, `words` or `meaning`; send one of them\.$/],
    ['a category that is too long', { query: 'x', category: 'x'.repeat(129) }, SHAPE],
    [
      'an expiry within zero seconds',
      { query: 'x', expiring_within: 0 },
      /^expiring_within must be a whole number from 1 to 31536000;/,
    ],
  ]),
  ...ask('search', 'invalid_input', [['a subject field', { query: 'x', subject: 'other' }, UNKNOWN_FIELD]]).map((one) => ({
    ...one,
    lists: true as const,
  })),
  ...['nothing', 'Remember', 'remember '].flatMap((operation) =>
    ask(operation, 'not_found', [
      ['no operation', newFact, /^There is no such operation; look up its name in the documentation\.$/],
    ]),
  ),
  ...ask('undo', 'invalid_input', [
    ['no client', { since: '2026-01-01T00:00:00Z' }, /^client is missing; send it as text\.$/],
    ['a blank client', { client: '', since: '2026-01-01T00:00:00Z' }, /^client is missing; send the name of the program/],
    ['an invalid time', { client: 'x', since: 'yesterday' }, /^since must be a UTC time;/],
  ]),
];

function cursor(...parts: unknown[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

const scopes = ask('forget', 'invalid_input', [
  ['nothing', {}, SCOPE],
  ['null', { scope: null }, SCOPE],
  ['a number', { scope: 7 }, SCOPE],
  ['a list', { scope: ['all'] }, SCOPE],
  ['an empty scope', { scope: '' }, SCOPE],
  ['a blank scope', { scope: ' ' }, SCOPE],
  ['an unknown scope', { scope: 'everything' }, SCOPE],
  ['another letter case', { scope: 'ALL' }, SCOPE],
  ['a scope between spaces', { scope: ' all ' }, SCOPE],
  ['an unknown kind', { scope: 'subject:me' }, SCOPE],
  ['the name of a property', { scope: '__proto__:x' }, SCOPE],
  ['a kind without a name', { scope: 'key' }, SCOPE],
  ...['key', 'prefix', 'category', 'tag', 'client', 'pack', 'pipeline'].flatMap((kind): Case[] => [
    [`${kind}: and nothing`, { scope: `${kind}:` }, SCOPE],
    [`${kind}: and blanks`, { scope: `${kind}: \t` }, SCOPE],
  ]),
  ['half a surrogate pair', { scope: 'key:\ud800' }, SCOPE],
  [
    'a category that no fact can have',
    { scope: 'category:x y' },
    /^scope names a category that no fact can have; send 1 to 64 characters of a-z, /,
  ],
  ['a text for a flag', { scope: 'all', dry_run: 'true' }, /^dry_run must be true or false; send it without quotes\.$/],
  ['a namespace field', { scope: 'all', namespace: 'other' }, UNKNOWN_FIELD],
  ['a list', [], /^The request must be a JSON object;/],
]);

const TYPE = /^searches\.0\.type must be `lex`, `vec` or `hyde`; send one of them\.$/;
const COUNTED = /^limit must be a whole number of 1 or more; send it as a JSON number\.$/;
const lex = (query: unknown = 'x') => ({ type: 'lex', query });

const questions = ask('query', 'invalid_input', [
  ['a list', [], /^The request must be a JSON object; send it with `query` or `searches`\.$/],
  ['a text', 'x', /^The request must be a JSON object;/],
  ['a number as query', { query: 7 }, /^query must be text; send it as a JSON string\.$/],
  ['a list as query', { query: ['x'] }, /^query must be text;/],
  ['zero', { query: 'x', limit: 0 }, COUNTED],
  ['a negative number', { query: 'x', limit: -1 }, COUNTED],
  ['one and a half', { query: 'x', limit: 1.5 }, COUNTED],
  ['a number that is too large', { query: 'x', limit: 1e300 }, COUNTED],
  ['a text for a number', { query: 'x', limit: '3' }, COUNTED],
  [
    'a search outside a list',
    { searches: lex() },
    /^searches must be a list; send a JSON array of objects with `type` and `query`\.$/,
  ],
  ['a text for a search', { searches: ['x'] }, /^searches\.0 must be a JSON object; send it with `type` and `query`\.$/],
  ['nothing for a search', { searches: [lex(), null] }, /^searches\.1 must be a JSON object;/],
  [
    '33 searches',
    { searches: many(33).map(lex) },
    /^searches must have at most 32 items; send only the most important searches\.$/,
  ],
  ['a search without a type', { searches: [{ query: 'x' }] }, TYPE],
  ['a search of an unknown type', { searches: [{ type: 'regex', query: 'x' }] }, TYPE],
  ['a search of another letter case', { searches: [{ type: 'LEX', query: 'x' }] }, TYPE],
  ['a search without words', { searches: [{ type: 'lex' }] }, /^searches\.0\.query is missing; send it as text\.$/],
  ['a number for words', { searches: [lex(), lex(7)] }, /^searches\.1\.query must be text;/],
  ['a text for a score', { query: 'x', minScore: '0.5' }, /^minScore must be a number; send it as a JSON number\.$/],
  ['a text for collections', { collections: 'helmdeck-x' }, /^collections must be a list of texts; send a JSON array\.$/],
  ['a number among collections', { collections: ['helmdeck-x', 7] }, /^collections\.1 must be text;/],
  ['a text for candidates', { candidateLimit: '40' }, /^candidateLimit must be a number;/],
  ['an invalid intent', { intent: { why: 'x' } }, /^intent must be text;/],
  ['a text for a flag', { rerank: 'true' }, /^rerank must be true or false; send it without quotes\.$/],
]);

export const TABLE = { keys, values, categories, tags, lifetimes, wholes, secrets, others, questions, scopes };
