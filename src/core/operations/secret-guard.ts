import { Failure } from '../../contract/failure.ts';
import { lazy } from '../../contract/schema.ts';
import {
  trimSecret,
  isChosenPassword,
  countCharacterClasses,
  isCode,
  isPasswordLike,
  isQuoted,
  isRandomLooking,
  SYMBOL,
  isPlaceholder,
  isHighEntropy,
} from './secret-heuristics.ts';
import {
  NETWORK_WORDS,
  PASSWORD_WORDS,
  PREFIXED_TOKENS,
  SECRET_WORDS,
  SESSION_COOKIE_NAME,
  SESSION_COOKIES,
  SHAPED_TOKENS,
  WORDS_AFTER_PASSWORD,
  WORDS_OF_HARMLESS_KEYS,
  WORDS_OF_SECRET_KEYS,
} from './secret-patterns.ts';

/**
 * A pattern for one kind of credential. Credentials in text are refused, so that they are not stored in the memory (R-FACT-18).
 * Patterns match known formats of credentials, not random-looking text in general, because digests, ids and public keys are
 * ordinary facts. The check protects against mistakes, not against a client that hides a secret on purpose. The work grows
 * linearly with the text (R-FACT-13): every repetition in a pattern is bounded, repetitions are not nested, and a pattern is
 * tried only if the text contains one of its hints.
 */
interface SecretPattern {
  /** The kind of credential, which completes "looks like" in the error message. The message never quotes the text. */
  readonly kind: string;
  /** Lower-case substrings. Every text that matches the pattern contains at least one of them. */
  readonly hints: readonly string[];
  readonly pattern: RegExp;
  /** Whether the text captured by the pattern's groups looks like a real credential. */
  readonly plausible: (...captured: string[]) => boolean;
}

/**
 * Returns the kind of the first credential in the text. The text may contain JSON. `hinted` is a shorter text that contains every
 * hint of the text.
 */
export function findSecret(text: string, hinted = text): { kind: string } | undefined {
  return matchPatterns(text, hinted) ?? (text.includes('\\') ? matchPatterns(unescaped(text)) : undefined);
}

/**
 * Decodes JSON escapes, because an escaped line break ends with a letter, so a token after it would look like the end of a word.
 * In JSON within JSON, each escape has several backslashes.
 */
const unescaped = (text: string): string =>
  text.replaceAll(/\\{1,8}(?:u([\dA-Fa-f]{4})|(["'/])|[bfnrt])/g, (_all, unit: string | undefined, letter = '\n') =>
    unit === undefined ? letter : String.fromCharCode(Number.parseInt(unit, 16)),
  );

function matchPatterns(text: string, hinted = text): { kind: string } | undefined {
  const { patterns } = patternTable();
  for (const index of patternsWithHints(hinted.toLowerCase())) {
    const one = patterns[index];
    if (one && text.matchAll(one.pattern).some(([, ...captured]) => one.plausible(...captured))) return { kind: one.kind };
  }
  return undefined;
}

/**
 * Returns the indexes of the patterns of which the text contains a hint, in ascending order. All long hints are looked for in a
 * single pass over the text.
 */
function patternsWithHints(lower: string): number[] {
  const { shortHints, longHints, startsHint } = patternTable();
  const found = new Set<number>();
  for (const { hint, owner } of shortHints) if (lower.includes(hint)) found.add(owner);
  let rolling = 0;
  for (let at = 0; at < lower.length; at += 1) {
    rolling = addToHash(rolling, lower.charCodeAt(at));
    if (startsHint[rolling] === 0) continue;
    const from = at + 1 - START_LENGTH;
    const started = longHints.get(lower.slice(from, at + 1)) ?? [];
    for (const { hint, owner } of started) if (lower.startsWith(hint, from)) found.add(owner);
  }
  return [...found].toSorted((one, other) => one - other);
}

const prefixed = ([kind, prefixes, body]: (typeof PREFIXED_TOKENS)[number]): SecretPattern => ({
  kind,
  hints: prefixes.map((prefix) => prefix.toLowerCase()),
  pattern: new RegExp(`(?<![A-Za-z0-9])(?:${prefixes.map((prefix) => RegExp.escape(prefix)).join('|')})(${body})`, 'g'),
  plausible: isRandomLooking,
});

const patternOf = (
  kind: string,
  hints: string | readonly string[],
  pattern: RegExp,
  plausible: SecretPattern['plausible'] = isRandomLooking,
): SecretPattern => ({
  kind,
  hints: [hints].flat(),
  pattern,
  plausible,
});

const passwordWord = PASSWORD_WORDS.join('|');
const secretWord = SECRET_WORDS.join('|');
const verb = 'is|was|ist|lautet|war|es|est|è|é|to|auf|це|это';

/**
 * Matches `name = value` in .env files, YAML, JSON, headers and tables. Reads the value with a lookahead, because the value may
 * also be the next name. The lookahead is limited to 40 characters, so that many names in a row cost little.
 */
const assigned = (words: string): RegExp =>
  new RegExp(
    String.raw`(?=[:=>|：\s])(?<=([\p{L}\p{N}_ .$-]{0,24})(${words})[\\"'\x60*\])}]{0,4}\s{0,3})(?:[:=>|：]{1,3}|\s(?=["']))` +
      String.raw`([\\\s"'\x60*(]{0,5})(?=([^\s"'\x60]{6,40}))`,
    'giu',
  );

const makePatterns = (): readonly SecretPattern[] => [
  ...PREFIXED_TOKENS.map(prefixed),
  ...SHAPED_TOKENS.map(([kind, hint, pattern]) => patternOf(kind, hint, pattern)),
  patternOf(
    'a private key',
    'private key',
    /-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY[A-Z ]{0,6}-----([\s\S]{0,400})/g,
    (body) => /[A-Za-z0-9+/]{40}/.test(body) && !isPlaceholder(body),
  ),
  patternOf('a recovery key', '-', /(?<![\w-])([0-9A-HJKMNP-TV-Z-]{69})(?![\w-])/gi, (words) =>
    words.split('-').every(({ length }, _at, { length: groups }) => length === 4 && groups === 14),
  ),
  patternOf(
    'a 1Password secret key',
    'a3-',
    /(?<!\w)A3-([A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9]{5}-[A-Z0-9-]{11,17})(?!\w)/g,
    (found) => !isPlaceholder(found),
  ),
  patternOf(
    'a signed token',
    'eyj',
    /(?<![\w.-])(eyJ[\w-]{10,2000})\.([\w-]{2,8000})\.([\w-]{20,1400})/g,
    (header, claims, signature) => hasAlgorithm(header) && !JWT_IO_EXAMPLE_CLAIMS.has(claims) && isRandomLooking(signature),
  ),
  patternOf('an authorization header', 'bearer', /\bbearer["']?[\s:=]{1,3}["']?([\w.~+/=-]{16,300})/gi, isHighEntropy),
  patternOf(
    'an authorization header',
    'authorization',
    /\bauthorization["']?[\s:=,]{1,4}["']?basic ([\w+/=-]{8,300})/gi,
    isBasicAuthorization,
  ),
  patternOf(
    'an authorization header',
    'authorization',
    /\bauthorization["']?[\s:=,]{1,4}["']?(?:token|apikey) ([\w.=-]{16,300})/gi,
    isHighEntropy,
  ),
  patternOf(
    'a password in a URL',
    '://',
    /:\/\/([^\s:@/"'<>?]{0,128}):([^\s@/"'<>?]{3,256})@/g,
    (user, password) => user !== password && isChosenPassword(password),
  ),
  patternOf('a password', 'password', /\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(\S{6,200})/g, isPasswordLike),
  patternOf('a password', ':', /^[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:]{6,200})$/gm, isPasswordLike),
  patternOf('a password', 'sshpass', /\bsshpass -p ?["']?([^\s"']{6,200})/g, isPasswordLike),
  patternOf('a password', 'curl', /\bcurl [^\n]{0,200}?(?:-u|--user) ?["']?[\w.@-]{1,80}:([^\s"']{6,200})/g, isPasswordLike),
  patternOf('a password', 'mysql', /\bmysql(?:dump)? [^\n]{0,100}? -p([^\s"']{6,200})/g, isPasswordLike),
  patternOf('a password', PASSWORD_WORDS, assigned(passwordWord), isAssignedPassword),
  patternOf('a password', PASSWORD_WORDS, paired(passwordWord), isAssignedPassword),
  patternOf('a password', PASSWORD_WORDS, followedByValue(String.raw`(?:${passwordWord})`), isUnmistakablePassword),
  patternOf(
    'a password',
    PASSWORD_WORDS,
    followedByValue(String.raw`(?:${passwordWord})[^\n:=：]{0,30}?\s(?:${verb})`),
    isUnmistakablePassword,
  ),
  patternOf('a password', PASSWORD_WORDS, statement(), isStatedPassword),
  patternOf(
    'a password',
    PASSWORD_WORDS,
    new RegExp(String.raw`(?<!\p{L})(?:${NETWORK_WORDS.join('|')})[\s-](?:${passwordWord})${VALUE_AND_NEXT}`, 'giu'),
    isStatedPassword,
  ),
  patternOf('a session cookie', 'cookie', /cookies?["'\\]{0,3}\s{0,3}[:=]?\s{0,3}["'\\]{0,3}([^\n]{8,400})/gi, isSessionCookie),
  patternOf('a session cookie', 'curl', /\bcurl [^\n]{0,200}?\s(?:-b|--cookie)[ =]?["']?([^\n]{8,400})/g, isSessionCookie),
  patternOf(
    'a session cookie',
    'cookie',
    /\bname["']?\s?:\s?["']([\w.-]{1,64})["'][\s,]{1,16}["']?value["']?\s?:\s?["']([^\s"'\\]{8,400})/g,
    isSessionValue,
  ),
  patternOf(
    'a session cookie',
    SESSION_COOKIES.map((name) => name.toLowerCase()),
    new RegExp(
      String.raw`(?<![\w.-])(${SESSION_COOKIES.map((name) => RegExp.escape(name)).join('|')})["']?\s?[=:]\s?["']?([^\s"'\\;,]{16,400})`,
      'gi',
    ),
    (_name, value) => isCookieSecret(value),
  ),
  patternOf('a password', '--pass', /--[a-z-]{0,24}pass(?:word|wd|phrase)?\s{1,3}["']?([^\s"'-][^\s"']{5,200})/g, isPasswordLike),
  patternOf('a secret', SECRET_WORDS, assigned(secretWord), isAssignedSecret),
  patternOf('a secret', SECRET_WORDS, paired(secretWord), isAssignedSecret),
  patternOf(
    'a secret',
    '--',
    /--[a-z-]{0,24}(?:token|secret|api-?key|access-key)\s{1,3}["']?([^\s"'-][^\s"']{15,300})/g,
    isHighEntropy,
  ),
  patternOf(
    'a seed phrase',
    ['seed', 'recovery phrase', 'mnemonic'],
    /\b(?:seed phrase|seed words|recovery phrase|mnemonic)[^\n:=]{0,20}[:=]\s{0,3}["'`]?([a-z ]{40,240})/gi,
    isSeedPhrase,
  ),
];

/** A value, and the word that follows it on the same line. */
const VALUE_AND_NEXT = String.raw`\s{1,2}([^\s"'\x60“”„«»]{6,64})(?:[^\S\n]{1,2}(\p{L}{1,16}))?`;

/** Number of characters that are hashed to decide whether a hint can start at a position of the text. */
const START_LENGTH = 3;

/**
 * Adds a character to a rolling hash of 15 bits. Each character shifts the hash by five bits, so that only the last three
 * characters count.
 */
const addToHash = (rolling: number, code: number): number => ((rolling << 5) ^ code) & 0x7fff;

/**
 * The patterns and an index of their hints. They are created when the first text is checked, because compiling them would delay
 * the startup.
 */
const patternTable = lazy(() => {
  const patterns = makePatterns();
  const hints = patterns.flatMap(({ hints: all }, owner) => all.map((hint) => ({ hint, owner })));
  const shortHints = hints.filter(({ hint }) => hint.length < START_LENGTH);
  const longHints = Map.groupBy(
    hints.filter(({ hint }) => hint.length >= START_LENGTH),
    ({ hint }) => hint.slice(0, START_LENGTH),
  );
  // For each hash, 1 if the first characters of a hint have this hash. Other characters can have the same hash.
  const startsHint = new Uint8Array(0x8000);
  for (const start of longHints.keys()) {
    let rolling = 0;
    for (let at = 0; at < START_LENGTH; at += 1) rolling = addToHash(rolling, start.charCodeAt(at));
    startsHint[rolling] = 1;
  }
  return { patterns, shortHints, longHints, startsHint };
});

/** Matches a name and its value as two fields of one object, as in Kubernetes manifests. */
function paired(words: string): RegExp {
  return new RegExp(
    String.raw`(?:name|key)["']?\s?[:=]\s?["']?([\w.-]{0,32})(${words})["']?[\s,]{1,16}["']?value["']?\s?[:=]\s?(["']?)([^\s"']{6,40})`,
    'gi',
  );
}

/** Matches a value directly after the word for a password or after a verb, as in "password Qw7#kd92". */
function followedByValue(before: string): RegExp {
  return new RegExp(String.raw`(?<!\p{L})(?!pass\s)${before}\s{1,2}(["'\x60“„«]?)([^\s"'\x60“”„«»]{6,200})`, 'giu');
}

/**
 * Matches a sentence that states a password, such as "The wifi password is sommer2026" or "my password is: hunter2". Between the
 * word and the value, allows only a verb or a colon, and a purpose ("for the guest network"): in "the password manager is
 * KeePass2" the value is not a password.
 */
function statement(): RegExp {
  const subject = String.raw`(?:(?<!\p{L})(?:${passwordWord})|(?<!\p{L})\p{L}{1,20}(?:passwort|kennwort))`;
  const purpose = String.raw`\s(?:for|of|on|at|to|von|vom|für|zum|zur|im|am|beim)\s[^\n:=：.,;]{1,30}`;
  const change = String.raw`\s(?:is|was|has been|wurde)\s(?:(?:now\s)?(?:changed|set|reset|updated)\sto|auf|zu)`;
  const statedBy = String.raw`\s(?:is|was|ist|war|lautet|es|est|è|é|это)(?:\s(?:still|now|jetzt|noch))?(?:\s?[:：])?`;
  return new RegExp(
    String.raw`${subject}(?:(?:${purpose})?(?:${change}|${statedBy})|${purpose}\s?[:：])${VALUE_AND_NEXT}`,
    'giu',
  );
}

/**
 * Whether the value is a word of letters and digits that ends the statement. In "is argon2id-hashed" and "is Python3 only", the
 * word is a description.
 */
function isStatedPassword(value: string, next: string | undefined): boolean {
  const guess = trimSecret(value);
  const ends = next === undefined || guess !== value || WORDS_AFTER_PASSWORD.has(next.toLowerCase());
  return ends && /\p{L}/u.test(guess) && /\d/.test(guess) && isPasswordLike(guess) && !isCode(value);
}

/** A cookie whose name suggests a session and whose value looks generated. */
function isSessionCookie(pairs: string): boolean {
  const values = pairs.matchAll(/([\w.-]{1,64})["'\\]{0,3}\s?[=:]\s?["'\\]{0,3}([^\s"'\\;,=]{8,200})/g);
  return values.some(([, name = '', value = '']) => isSessionValue(name, value));
}

const isSessionValue = (name: string, value: string): boolean => SESSION_COOKIE_NAME.test(name) && isCookieSecret(value);

const isCookieSecret = (value: string): boolean => /\d/.test(value) && isPasswordLike(value) && !isCode(value);

/**
 * Whether the value can only be a password. The check is strict, because in a sentence, an ordinary word often follows
 * "password".
 */
function isUnmistakablePassword(lead: string, value: string): boolean {
  const guess = trimSecret(value);
  if (!isPasswordLike(guess) || isCode(value)) return false;
  return (
    lead !== '' || (guess.length >= 8 && countCharacterClasses(guess) >= 3 && (SYMBOL.test(guess) || !/[-_./:]/.test(guess)))
  );
}

function isAssignedPassword(before: string, word: string, lead: string, value: string): boolean {
  // This fast check comes first, because most values contain only one class of characters.
  if (countCharacterClasses(value) < 2) return false;
  return (
    namesPassword(before, word) && (isQuoted(lead) ? isPasswordLike(value) : isPasswordLike(trimSecret(value)) && !isCode(value))
  );
}

function isAssignedSecret(before: string, word: string, lead: string, value: string): boolean {
  return (
    namesSecret(before, word) && (isQuoted(lead) ? isHighEntropy(value) : isHighEntropy(trimSecret(value)) && !isCode(value))
  );
}

const endsWithLetter = (before: string): boolean => /\p{L}$/u.test(before);

function namesPassword(before: string, word: string): boolean {
  return word.toLowerCase() !== 'pass' || !endsWithLetter(before);
}

function namesSecret(before: string, word: string): boolean {
  const words = before.match(/\p{Lu}?\p{Ll}+|\p{Lu}+|\d+/gu)?.map((one) => one.toLowerCase()) ?? [];
  const last = words.at(-1) ?? '';
  if (WORDS_OF_HARMLESS_KEYS.has(last) || words.slice(-3).includes('public')) return false;
  switch (word.toLowerCase()) {
    case 'key':
      return WORDS_OF_SECRET_KEYS.has(last) || /(?:^|[^\p{L}\p{N}])[A-Z][A-Z0-9_]{1,31}_$/u.test(before);
    case 'pat':
    case 'auth':
      return !endsWithLetter(before);
    default:
      return true;
  }
}

const JWT_IO_EXAMPLE_CLAIMS = new Set(['eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ']);

function hasAlgorithm(header: string): boolean {
  const json = Buffer.from(header, 'base64url').toString();
  return /"alg"\s{0,3}:\s{0,3}"[^"]/.test(json) && !/"alg"\s{0,3}:\s{0,3}"none"/i.test(json);
}

/** Whether the base64 text is a user name and a password that a person chose. */
function isBasicAuthorization(encoded: string): boolean {
  const [name, password] = Buffer.from(encoded, 'base64').toString().split(':');
  if (name === undefined || password === undefined || !/^[\x20-\x7e]+$/.test(name + password)) return false;
  return isChosenPassword(password) && password !== 'open sesame';
}

/** Whether the words can be a BIP 39 phrase, which has 12, 15, 18, 21 or 24 words of 3 to 8 letters. */
function isSeedPhrase(phrase: string): boolean {
  const words = phrase.trim().split(/ +/);
  return words.length >= 12 && words.length % 3 === 0 && words.every(({ length }) => length >= 3 && length <= 8);
}

interface Texts {
  readonly key?: string;
  readonly value?: string;
  readonly tags?: readonly string[];
  /** The category, which is the only one of these texts that is stored unencrypted. */
  readonly category?: string;
}

/**
 * Throws if a text contains a credential, because every agent can read the memory. With the setting `warn`, returns a warning
 * instead.
 */
export function refuseSecrets(setting: 'refuse' | 'warn', texts: Texts): string | undefined {
  return refuse(setting, credentialIn(texts));
}

/** Throws or warns if the JSON of a field contains a credential. */
export function refuseSecretsIn(setting: 'refuse' | 'warn', fields: object): string | undefined {
  for (const [field, value] of Object.entries(fields)) {
    // Check the JSON rather than the value, because JSON includes field names, which can reveal that a value is a secret.
    const secret = findSecret(JSON.stringify(value));
    if (secret) return refuse(setting, { field, kind: secret.kind });
  }
  return undefined;
}

function refuse(setting: 'refuse' | 'warn', found: CredentialMatch | undefined): string | undefined {
  if (!found) return undefined;
  const looks = `${found.field} looks like ${found.kind}`;
  if (setting === 'warn') return `${looks}; store it in a password manager, and forget it here.`;
  throw new Failure('invalid_input', `${looks}; store it in a password manager or vault, and remember only where it is.`);
}

/** Maximum characters of a value that is also checked together with its key. The key can reveal that the value is a password. */
const CHECKED_WITH_KEY = 256;

interface CredentialMatch {
  readonly field: string;
  readonly kind: string;
}

function credentialIn({ key = '', value = '', tags = [], category = '' }: Texts): CredentialMatch | undefined {
  const named = value !== '' && value.length <= CHECKED_WITH_KEY ? `${key}: ${value}` : undefined;
  const others = [...tags, category].join('\n');
  // Check all texts together first, because usually none contains a credential.
  const any =
    named === undefined
      ? findSecret(`${value}\n${key}\n${others}`)
      : findSecret(`${value}\n${key}\n${named}\n${others}`, `${named}\n${others}`);
  if (!any) return undefined;
  for (const [field, texts] of Object.entries({ value: [value], key: [key], tags, category: [category] })) {
    for (const text of texts) {
      const secret = findSecret(text);
      if (secret) return { field, kind: secret.kind };
    }
  }
  return { field: 'value', kind: any.kind };
}
