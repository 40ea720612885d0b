import { Failure } from '../../contract/failure.ts';
import { lazy } from '../../contract/lazy.ts';
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
  PASSWORD_WORDS,
  PREFIXED_TOKENS,
  SECRET_WORDS,
  SHAPED_TOKENS,
  WORDS_AFTER_PASSWORD,
  WORDS_OF_HARMLESS_KEYS,
  WORDS_OF_SECRET_KEYS,
} from './secret-patterns.ts';

/**
 * Tells text that gives a credential away, so that memory is not where one ends up (R-FACT-18). It looks for what is known
 * of credentials, not for whatever looks random: digests, ids and public keys are ordinary facts. A guard against mistakes,
 * not against someone who wants to hide a secret in a fact.
 *
 * The work grows linearly with the text: every repetition has an upper bound, none stands within another, and a pattern is
 * tried only where the text holds its hint (R-FACT-13).
 */
interface SecretPattern {
  /** Plain words that complete "looks like"; all a refusal says, for the text itself must not travel. */
  readonly kind: string;
  /** Lower case. Without one of these in the text the pattern cannot match. */
  readonly hints: readonly string[];
  readonly pattern: RegExp;
  /** Gets what the pattern captured. */
  readonly plausible: (...captured: string[]) => boolean;
}

/** The first credential found in the text, named by its kind and never quoted. The text may be JSON, or hold some. */
export function findSecret(text: string): { kind: string } | undefined {
  return findIn(text) ?? (text.includes('\\') ? findIn(unescaped(text)) : undefined);
}

/** In JSON a line break is a letter, and what begins behind it would look like the end of a word; the deeper, the more backslashes. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\{1,8}(?:u([\dA-Fa-f]{4})|(["'/])|[bfnrt])/g, (_all, unit: string | undefined, letter = '\n') =>
    unit === undefined ? letter : String.fromCharCode(Number.parseInt(unit, 16)),
  );

function findIn(text: string): { kind: string } | undefined {
  const hinted = hintedIn(text.toLowerCase());
  const found = known().marks.find(
    (mark) => hinted.has(mark) && text.matchAll(mark.pattern).some(([, ...captured]) => mark.plausible(...captured)),
  );
  return found && { kind: found.kind };
}

/** The marks of which the text holds a hint. One walk along the text looks for all long hints at once. */
function hintedIn(lower: string): ReadonlySet<SecretPattern> {
  const { shortHints, longHints, hintBegins } = known();
  const found = new Set<SecretPattern>();
  for (const { hint, mark } of shortHints) if (lower.includes(hint)) found.add(mark);
  let trace = 0;
  for (let at = 0; at < lower.length; at += 1) {
    trace = tracedFurther(trace, lower.charCodeAt(at));
    if (hintBegins[trace] === 0) continue;
    const from = at + 1 - BEGINNING;
    const begun = longHints.get(lower.slice(from, at + 1)) ?? [];
    for (const { hint, mark } of begun) if (lower.startsWith(hint, from)) found.add(mark);
  }
  return found;
}

const prefixed = ([kind, prefixes, body]: (typeof PREFIXED_TOKENS)[number]): SecretPattern => ({
  kind,
  hints: prefixes.map((prefix) => prefix.toLowerCase()),
  pattern: new RegExp(`(?<![A-Za-z0-9])(?:${prefixes.map((prefix) => RegExp.escape(prefix)).join('|')})(${body})`, 'g'),
  plausible: isRandomLooking,
});

const like = (
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
 * `name = value` in any of its spellings: .env, YAML, JSON, headers, tables. The value is only looked at, for it may be the
 * next name; its first 40 letters tell enough, and so many names in a row cost little.
 */
const assigned = (words: string): RegExp =>
  new RegExp(
    String.raw`(?=[:=>|：\s])(?<=([\p{L}\p{N}_ .$-]{0,24})(${words})[\\"'\x60*\])}]{0,4}\s{0,3})(?:[:=>|：]{1,3}|\s(?=["']))` +
      String.raw`([\\\s"'\x60*(]{0,5})(?=([^\s"'\x60]{6,40}))`,
    'giu',
  );

const makePatterns = (): readonly SecretPattern[] => [
  ...PREFIXED_TOKENS.map(prefixed),
  ...SHAPED_TOKENS.map(([kind, hint, pattern]) => like(kind, hint, pattern)),
  like(
    'a private key',
    'private key',
    /-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY[A-Z ]{0,6}-----([\s\S]{0,400})/g,
    (body) => /[A-Za-z0-9+/]{40}/.test(body) && !isPlaceholder(body),
  ),
  like('a recovery key', '-', /(?<![\w-])([0-9A-HJKMNP-TV-Z-]{69})(?![\w-])/gi, (words) =>
    words.split('-').every(({ length }, _at, { length: groups }) => length === 4 && groups === 14),
  ),
  like(
    'a 1Password secret key',
    'a3-',
    /(?<!\w)A3-([A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9]{5}-[A-Z0-9-]{11,17})(?!\w)/g,
    (found) => !isPlaceholder(found),
  ),
  like(
    'a signed token',
    'eyj',
    /(?<![\w.-])(eyJ[\w-]{10,2000})\.([\w-]{2,8000})\.([\w-]{20,1400})/g,
    (header, claims, signature) => algorithm(header) && !documented.has(claims) && isRandomLooking(signature),
  ),
  like('an authorization header', 'bearer', /\bbearer["']?[\s:=]{1,3}["']?([\w.~+/=-]{16,300})/gi, isHighEntropy),
  like('an authorization header', 'authorization', /\bauthorization["']?[\s:=,]{1,4}["']?basic ([\w+/=-]{8,300})/gi, signsIn),
  like(
    'an authorization header',
    'authorization',
    /\bauthorization["']?[\s:=,]{1,4}["']?(?:token|apikey) ([\w.=-]{16,300})/gi,
    isHighEntropy,
  ),
  like(
    'a password in a URL',
    '://',
    /:\/\/([^\s:@/"'<>?]{0,128}):([^\s@/"'<>?]{3,256})@/g,
    (user, password) => user !== password && isChosenPassword(password),
  ),
  like('a password', 'password', /\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(\S{6,200})/g, isPasswordLike),
  like('a password', ':', /^[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:]{6,200})$/gm, isPasswordLike),
  like('a password', 'sshpass', /\bsshpass -p ?["']?([^\s"']{6,200})/g, isPasswordLike),
  like('a password', 'curl', /\bcurl [^\n]{0,200}?(?:-u|--user) ?["']?[\w.@-]{1,80}:([^\s"']{6,200})/g, isPasswordLike),
  like('a password', 'mysql', /\bmysql(?:dump)? [^\n]{0,100}? -p([^\s"']{6,200})/g, isPasswordLike),
  like('a password', PASSWORD_WORDS, assigned(passwordWord), keepsPassword),
  like('a password', PASSWORD_WORDS, paired(passwordWord), keepsPassword),
  like('a password', PASSWORD_WORDS, told(String.raw`(?:${passwordWord})`), guessedPassword),
  like('a password', PASSWORD_WORDS, told(String.raw`(?:${passwordWord})[^\n:=：]{0,30}?\s(?:${verb})`), guessedPassword),
  like('a password', PASSWORD_WORDS, stated(), statedPassword),
  like('a session cookie', 'cookie', /cookies?["'\\]{0,3}\s{0,3}[:=]?\s{0,3}["'\\]{0,3}([^\n]{8,400})/gi, opensSession),
  like('a password', '--pass', /--[a-z-]{0,24}pass(?:word|wd|phrase)?\s{1,3}["']?([^\s"'-][^\s"']{5,200})/g, isPasswordLike),
  like('a secret', SECRET_WORDS, assigned(secretWord), keepsSecret),
  like('a secret', SECRET_WORDS, paired(secretWord), keepsSecret),
  like(
    'a secret',
    '--',
    /--[a-z-]{0,24}(?:token|secret|api-?key|access-key)\s{1,3}["']?([^\s"'-][^\s"']{15,300})/g,
    isHighEntropy,
  ),
  like(
    'a seed phrase',
    ['seed', 'recovery phrase', 'mnemonic'],
    /\b(?:seed phrase|seed words|recovery phrase|mnemonic)[^\n:=]{0,20}[:=]\s{0,3}["'`]?([a-z ]{40,240})/gi,
    seedWords,
  ),
];

/** So many letters of a text tell which hints may begin there: nearly everywhere none. */
const BEGINNING = 3;

/** What is left of the last three letters: five bits further with each, and the fourth last has gone. */
const tracedFurther = (trace: number, letter: number): number => ((trace << 5) ^ letter) & 0x7fff;

/** What is looked for, and by which hints: so many patterns that they are made for the first text and not at the start. */
const known = lazy(() => {
  const marks = makePatterns();
  const hints = marks.flatMap((mark) => mark.hints.map((hint) => ({ hint, mark })));
  const shortHints = hints.filter(({ hint }) => hint.length < BEGINNING);
  const longHints = Map.groupBy(
    hints.filter(({ hint }) => hint.length >= BEGINNING),
    ({ hint }) => hint.slice(0, BEGINNING),
  );
  // Whether a hint begins with letters that leave this trace. Some others leave the same.
  const hintBegins = new Uint8Array(0x8000);
  for (const beginning of longHints.keys()) {
    let trace = 0;
    for (let at = 0; at < BEGINNING; at += 1) trace = tracedFurther(trace, beginning.charCodeAt(at));
    hintBegins[trace] = 1;
  }
  return { marks, shortHints, longHints, hintBegins };
});

/** Name and value as two fields of one record, as Kubernetes, XML and lists of settings have them. */
function paired(words: string): RegExp {
  return new RegExp(
    String.raw`(?:name|key)["']?\s?[:=]\s?["']?([\w.-]{0,32})(${words})["']?[\s,]{1,16}["']?value["']?\s?[:=]\s?(["']?)([^\s"']{6,40})`,
    'gi',
  );
}

/** A value after the word itself or a verb, as people tell it in a sentence. */
function told(before: string): RegExp {
  return new RegExp(String.raw`(?<!\p{L})(?!pass\s)${before}\s{1,2}(["'\x60“„«]?)([^\s"'\x60“”„«»]{6,200})`, 'giu');
}

/**
 * "The wifi password is sommer2026": a sentence that says what a password is. Only "is" and its like between the two, or what the
 * password is for: "the password manager is KeePass2" says something else.
 */
function stated(): RegExp {
  const what = String.raw`(?:(?<!\p{L})(?:${passwordWord})|(?<!\p{L})\p{L}{1,20}(?:passwort|kennwort))`;
  const purpose = String.raw`(?:\s(?:for|of|on|at|to|von|vom|für|zum|zur|im|am|beim)\s[^\n:=：.,;]{1,30})?`;
  return new RegExp(
    String.raw`${what}${purpose}\s(?:is|was|ist|war|lautet|es|est|è|é|это)(?:\s(?:still|now|jetzt|noch))?(?:\s?[:：])?\s{1,2}([^\s"'\x60“”„«»]{6,64})(?:[^\S\n]{1,2}(\p{L}{1,16}))?`,
    'giu',
  );
}

/** Letters and digits in one word, which the sentence ends with: "is 12-stellig" and "is argon2id-hashed" describe a password. */
function statedPassword(value: string, next: string | undefined): boolean {
  const guess = trimSecret(value);
  const ends = next === undefined || guess !== value || WORDS_AFTER_PASSWORD.has(next.toLowerCase());
  return ends && /\p{L}/u.test(guess) && /\d/.test(guess) && isPasswordLike(guess) && !isCode(value);
}

const SESSION = /(?:sess|sid$|auth|token|jwt|login|remember)/i;

/** A cookie by which its holder is known: a name that says so, and a value that nobody wrote by hand. */
function opensSession(pairs: string): boolean {
  const values = pairs.matchAll(/([\w.-]{1,64})["'\\]{0,3}\s?[=:]\s?["'\\]{0,3}([^\s"'\\;,=]{8,200})/g);
  return values.some(
    ([, name = '', value = '']) => SESSION.test(name) && /\d/.test(value) && isPasswordLike(value) && !isCode(value),
  );
}

/** In a sentence an ordinary word may follow: only what nobody writes otherwise counts. */
function guessedPassword(lead: string, value: string): boolean {
  const guess = trimSecret(value);
  if (!isPasswordLike(guess) || isCode(value)) return false;
  return (
    lead !== '' || (guess.length >= 8 && countCharacterClasses(guess) >= 3 && (SYMBOL.test(guess) || !/[-_./:]/.test(guess)))
  );
}

function keepsPassword(before: string, word: string, lead: string, value: string): boolean {
  // Most of what follows is of one kind, and no less so when its end is cut off.
  if (countCharacterClasses(value) < 2) return false;
  return (
    namesPassword(before, word) && (isQuoted(lead) ? isPasswordLike(value) : isPasswordLike(trimSecret(value)) && !isCode(value))
  );
}

function keepsSecret(before: string, word: string, lead: string, value: string): boolean {
  return (
    namesSecret(before, word) && (isQuoted(lead) ? isHighEntropy(value) : isHighEntropy(trimSecret(value)) && !isCode(value))
  );
}

const glued = (before: string): boolean => /\p{L}$/u.test(before);

function namesPassword(before: string, word: string): boolean {
  return word.toLowerCase() !== 'pass' || !glued(before);
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
      return !glued(before);
    default:
      return true;
  }
}

/** The claims of the token that jwt.io shows to everybody. */
const documented = new Set(['eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ']);

function algorithm(header: string): boolean {
  const json = Buffer.from(header, 'base64url').toString();
  return /"alg"\s{0,3}:\s{0,3}"[^"]/.test(json) && !/"alg"\s{0,3}:\s{0,3}"none"/i.test(json);
}

/** Basic authorization is a name and a password, in letters that only look random. */
function signsIn(encoded: string): boolean {
  const [name, password] = Buffer.from(encoded, 'base64').toString().split(':');
  if (name === undefined || password === undefined || !/^[\x20-\x7e]+$/.test(name + password)) return false;
  return isChosenPassword(password) && password !== 'open sesame';
}

/** BIP 39 knows 12, 15, 18, 21 or 24 words of 3 to 8 letters. */
function seedWords(phrase: string): boolean {
  const words = phrase.trim().split(/ +/);
  return words.length >= 12 && words.length % 3 === 0 && words.every(({ length }) => length >= 3 && length <= 8);
}

interface Texts {
  readonly key?: string;
  readonly value?: string;
  readonly tags?: readonly string[];
  /** Stands in clear in the file. */
  readonly category?: string;
}

/** Memory is read by every agent, and a credential does not belong there: it is refused, or, if the owner says so, warned about. */
export function refuseSecrets(setting: 'refuse' | 'warn', texts: Texts): string | undefined {
  return refuse(setting, credentialIn(texts));
}

/** The same of what is more than texts, field by field. */
export function refuseSecretsIn(setting: 'refuse' | 'warn', fields: object): string | undefined {
  for (const [field, value] of Object.entries(fields)) {
    // Names tell what values are.
    const secret = findSecret(JSON.stringify(value));
    if (secret) return refuse(setting, { field, kind: secret.kind });
  }
  return undefined;
}

function refuse(setting: 'refuse' | 'warn', found: Found | undefined): string | undefined {
  if (!found) return undefined;
  const looks = `${found.field} looks like ${found.kind}`;
  if (setting === 'warn') return `${looks}; better keep it in a password manager and forget it here.`;
  throw new Failure('invalid_input', `${looks}; keep it in a password manager or vault, and remember only where it is.`);
}

/** Under a telling name a short text may be a password that says nothing by itself. */
const SHORT = 256;

interface Found {
  readonly field: string;
  readonly kind: string;
}

function credentialIn({ key = '', value = '', tags = [], category = '' }: Texts): Found | undefined {
  const named = value !== '' && value.length <= SHORT ? [`${key}: ${value}`] : [];
  // Nearly always there is nothing, and one look says so.
  const any = findSecret([value, key, ...named, ...tags, category].join('\n'));
  if (!any) return undefined;
  for (const [field, texts] of Object.entries({ value: [value], key: [key], tags, category: [category] })) {
    for (const text of texts) {
      const secret = findSecret(text);
      if (secret) return { field, kind: secret.kind };
    }
  }
  return { field: 'value', kind: any.kind };
}
