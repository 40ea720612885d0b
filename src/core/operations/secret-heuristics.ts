// What the letters of a text tell about it: a word, a placeholder, a place where a secret is kept, or a secret.

/** What an issuer's random letters look like: not a stand-in, and not words-between-dashes. */
export function isRandomLooking(token: string): boolean {
  return !isPlaceholder(token) && !(/[-_.]/.test(token) && wordy(token));
}

/** What a person would choose and remember. */
export function isPasswordLike(value: string): boolean {
  return (
    countCharacterClasses(value) >= 2 &&
    value.length >= 6 &&
    !wordy(value) &&
    !isPlaceholder(value) &&
    !elsewhere(value) &&
    !technical.test(value)
  );
}

/** Enough letters, and disorder enough, to open something. */
export function isHighEntropy(value: string): boolean {
  const long = value.length >= 16 && pieces(value).some((piece) => piece.length >= 7 && !readable(piece));
  const mixed = value.length >= 8 && value.length < 16 && countCharacterClasses(value) === 4 && !technical.test(value);
  if (!long && !mixed) return false;
  return !isPlaceholder(value) && !elsewhere(value) && !scheme.test(value) && !wordy(value) && (mixed || bits(value) >= 2.8);
}

export const isQuoted = (lead: string): boolean => /["']/.test(lead);

/** Without quotes the value ends where another field or the sentence does. */
export function trimSecret(value: string): string {
  const end = value.search(/[;&<]/);
  return (end < 0 ? value : value.slice(0, end)).replace(/[.,!?)\]}\\|*]{1,4}$/, '');
}

export const isCode = (value: string): boolean => /[\w$\]]\(|=>|\?\./.test(value);

/** A name of the place where the secret is kept, or another text that speaks of secrets without being one. */
function elsewhere(value: string): boolean {
  return (
    /^(?:\$[\w{(]|[{[<()]|%\w+%|op:|arn:|vault:|env:|secrets?[.:/]|ENC\[|ssh-|ecdsa-|\d{4}-\d\d-\d\d)/.test(value) ||
    /:\/\/|process\.env|import\.meta|os\.environ|getenv/.test(value) ||
    (/^(?:[~.]{0,2}\/|[A-Za-z]:\\)/.test(value) && wordShare(value) > 0.3)
  );
}

/** A digest that says so, or the name of a technique and more. */
const scheme = /^(?:sha-?\d{1,3}[-:]|md5[-:]|blake\w{1,3}[-:]|base64|base32|argon2|pbkdf2|oauth)/i;
/** Names of techniques, which mix letters and digits like passwords do. */
const technical =
  /(?<![a-z])(?:sha-?\d|md5|bcrypt|scrypt|argon2|pbkdf2|oauth|base64|base32|utf-?\d|1password|auth0|totp|x509|ed25519|rsa-?\d|aes-?\d|[hre]s256|k8s|log4j|oidc)/i;

/** Passwords that every manual uses, and every machine of a developer. */
const stock =
  /^(?:[A-Z_]+|[a-z_-]{0,16}pass(?:word|wd)?|pw|pwd|secret|admin|root|postgres|mysql|guest|test|dev|user|minio|minioadmin|token|key|x-oauth-basic)$/;

/** Where only a password can stand, whatever somebody chose is one. */
export function isChosenPassword(password: string): boolean {
  return !stock.test(password) && !isPlaceholder(password) && !elsewhere(password);
}

const placeholder =
  /example|change.?me|placeholder|redacted|dummy|sample|insert|replace|goes.here|(?:^|[-_ <{[])your|xxxx|\.\.\.|…|\*\*\*|<[^>]|\$\{|\{\{|%s|not.?real|fake/i;

/** What stands where a secret would: a manual's example, stars, one letter again and again, letters as they are counted. */
export function isPlaceholder(text: string): boolean {
  return placeholder.test(text) || new Set(text).size <= Math.min(4, text.length / 3) || counted(text);
}

function counted(text: string): boolean {
  let steps = 0;
  for (let at = 1; at < text.length; at += 1) if (text.charCodeAt(at) - text.charCodeAt(at - 1) === 1) steps += 1;
  return steps > text.length / 2;
}

function wordy(text: string): boolean {
  return wordShare(text) >= 0.6;
}

/** A sign inside a word is no hyphen: it makes the word a password. */
const pieces = (text: string): readonly string[] => text.split(/[^\p{L}\p{N}!#$^]|^[!#$^]+|[!#$^]+$/u);

/** How much of the text is words and numbers, by letters. */
function wordShare(text: string): number {
  let words = 0;
  let all = 0;
  for (const piece of pieces(text)) {
    all += piece.length;
    if (readable(piece)) words += piece.length;
  }
  return words / Math.max(1, all);
}

/** `words`, `Words`, `WORDS`, `camelCaseWords` or a number. Random letters change case too often, or go on for too long. */
function readable(piece: string): boolean {
  if (/^(?:[a-z]{3,24}|\d+|0x[\dA-Fa-f]{1,8})$/.test(piece)) return true;
  if (piece.length < 3 || !/^\p{L}+$/u.test(piece)) return false;
  if (oneCase.test(piece)) return piece.length <= 24;
  const humps = piece.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u);
  return humps.length * 3.5 <= piece.length && humps.every((hump) => hump.length <= 24 && oneCase.test(hump));
}

const oneCase = /^(?:\p{Lu}+|.\P{Lu}*)$/u;

export const SYMBOL = /[!-,;-@[-^`{-~]/;

const CLASSES = [/[a-z]/, /[A-Z]/, /\d/, SYMBOL];

/** How many of small letters, capitals, digits and signs it mixes; signs that join words do not count. */
export const countCharacterClasses = (text: string): number =>
  CLASSES.reduce((count, one) => (one.test(text) ? count + 1 : count), 0);

/** Shannon's measure of disorder, in bits per letter. */
function bits(text: string): number {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  return counts.values().reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}
