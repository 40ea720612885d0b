// These functions guess from the characters of a text whether it is a word, a placeholder, the location of a secret, or a secret.

/** Whether the text looks generated. A placeholder or words joined by dashes do not. */
export function isRandomLooking(token: string): boolean {
  return !isPlaceholder(token) && !(/[-_.]/.test(token) && isMostlyWords(token));
}

/** Whether the text looks like a password that a person chose. */
export function isPasswordLike(value: string): boolean {
  return (
    countCharacterClasses(value) >= 2 &&
    value.length >= 6 &&
    !isMostlyWords(value) &&
    !isPlaceholder(value) &&
    !isLocation(value) &&
    !TECHNICAL.test(value)
  );
}

/** Whether the text is long and random enough to be a key or token. */
export function isHighEntropy(value: string): boolean {
  const long = value.length >= 16 && pieces(value).some((piece) => piece.length >= 7 && !isReadable(piece));
  const mixed = value.length >= 8 && value.length < 16 && countCharacterClasses(value) === 4 && !TECHNICAL.test(value);
  if (!long && !mixed) return false;
  return (
    !isPlaceholder(value) &&
    !isLocation(value) &&
    !SCHEME.test(value) &&
    !isMostlyWords(value) &&
    (mixed || entropyOf(value) >= 2.8)
  );
}

export const isQuoted = (lead: string): boolean => /["']/.test(lead);

/** Truncates an unquoted value at the end of the field or of the sentence. */
export function trimSecret(value: string): string {
  const end = value.search(/[;&<]/);
  return (end < 0 ? value : value.slice(0, end)).replace(/[.,!?)\]}\\|*]{1,4}$/, '');
}

export const isCode = (value: string): boolean => /[\w$\]]\(|=>|\?\./.test(value);

/** Whether the text is about a secret but is not a secret itself: a path to a secret, a public key, or the name of a variable. */
function isLocation(value: string): boolean {
  return (
    /^(?:\$[\w{(]|[{[<()]|%\w+%|op:|arn:|vault:|env:|secrets?[.:/]|ENC\[|ssh-|ecdsa-|\d{4}-\d\d-\d\d)/.test(value) ||
    /:\/\/|process\.env|import\.meta|os\.environ|getenv/.test(value) ||
    (/^(?:[~.]{0,2}\/|[A-Za-z]:\\)/.test(value) && wordShare(value) > 0.3)
  );
}

/** Matches a labelled digest, or a text that starts with the name of a technique. */
const SCHEME = /^(?:sha-?\d{1,3}[-:]|md5[-:]|blake\w{1,3}[-:]|base64|base32|argon2|pbkdf2|oauth)/i;
/** Matches names of techniques and products that mix letters and digits, as passwords do. */
const TECHNICAL =
  /(?<![a-z])(?:sha-?\d|md5|bcrypt|scrypt|argon2|pbkdf2|oauth|base64|base32|utf-?\d|1password|auth0|totp|x509|ed25519|rsa-?\d|aes-?\d|[hre]s256|k8s|log4j|oidc)/i;

/** Matches default passwords from manuals and development machines. */
const DEFAULT_PASSWORD =
  /^(?:[A-Z_]+|[a-z_-]{0,16}pass(?:word|wd)?|pw|pwd|secret|admin|root|postgres|mysql|guest|test|dev|user|minio|minioadmin|token|key|x-oauth-basic)$/;

/**
 * Whether a text is a real password, for a place where only a password can be, such as in a URL. Default passwords, placeholders
 * and locations are not.
 */
export function isChosenPassword(password: string): boolean {
  return !DEFAULT_PASSWORD.test(password) && !isPlaceholder(password) && !isLocation(password);
}

const PLACEHOLDER =
  /example|change.?me|placeholder|redacted|dummy|sample|insert|replace|goes.here|(?:^|[-_ <{[])your|xxxx|\.\.\.|…|\*\*\*|<[^>]|\$\{|\{\{|%s|not.?real|fake/i;

/**
 * Whether the text is a placeholder: an example from a manual, stars, very few different characters, or a sequence such as
 * "abcdef".
 */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text) || new Set(text).size <= Math.min(4, text.length / 3) || isSequence(text);
}

function isSequence(text: string): boolean {
  let steps = 0;
  for (let at = 1; at < text.length; at += 1) if (text.charCodeAt(at) - text.charCodeAt(at - 1) === 1) steps += 1;
  return steps > text.length / 2;
}

function isMostlyWords(text: string): boolean {
  return wordShare(text) >= 0.6;
}

/**
 * Splits a text at separators. Characters such as `!` and `#` inside a word are not separators, because they are typical of
 * passwords.
 */
const pieces = (text: string): readonly string[] => text.split(/[^\p{L}\p{N}!#$^]|^[!#$^]+|[!#$^]+$/u);

/** Returns the fraction of characters that belong to words and numbers, from 0 to 1. */
function wordShare(text: string): number {
  let words = 0;
  let all = 0;
  for (const piece of pieces(text)) {
    all += piece.length;
    if (isReadable(piece)) words += piece.length;
  }
  return words / Math.max(1, all);
}

/**
 * Whether the piece is a word or number: `words`, `Words`, `WORDS`, `camelCaseWords` or digits. Random letters change case more
 * often, or form longer pieces.
 */
function isReadable(piece: string): boolean {
  if (/^(?:[a-z]{3,24}|\d+|0x[\dA-Fa-f]{1,8})$/.test(piece)) return true;
  if (piece.length < 3 || !/^\p{L}+$/u.test(piece)) return false;
  if (ONE_CASE.test(piece)) return piece.length <= 24;
  const humps = piece.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u);
  return humps.length * 3.5 <= piece.length && humps.every((hump) => hump.length <= 24 && ONE_CASE.test(hump));
}

const ONE_CASE = /^(?:\p{Lu}+|.\P{Lu}*)$/u;

export const SYMBOL = /[!-,;-@[-^`{-~]/;

const CLASSES = [/[a-z]/, /[A-Z]/, /\d/, SYMBOL];

/**
 * Returns how many of these classes the text contains: lower-case letters, upper-case letters, digits, symbols. Symbols that join
 * words do not count.
 */
export const countCharacterClasses = (text: string): number =>
  CLASSES.reduce((count, one) => (one.test(text) ? count + 1 : count), 0);

/** Returns the Shannon entropy in bits per character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  return counts.values().reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}
