import type { Mark } from '../../contract/fact.ts';
import { lazy } from '../../contract/schema.ts';
import { COMMAND_PATTERNS, FRAMING_PATTERNS } from './mark-patterns.ts';

/**
 * Returns why a text is suspicious, or undefined if it is ordinary. Such text can still be stored and read, because a pattern cannot
 * know what its author meant. A mark keeps a fact out of briefs, and tells each reader of the fact.
 *
 * - `hidden`: the text has characters that a person does not see, or letters that look like others.
 * - `framing`: the text looks like a message of another role, or like the frame around quoted facts.
 * - `instructions`: the text commands the model that reads it.
 */
function markOf(text: string): Mark | undefined {
  const isAscii = ASCII.test(text);
  if (!isAscii && hidesText(text)) return 'hidden';
  const visible = isAscii ? text : visibleForm(text);
  if (FRAMING_PATTERNS.some((pattern) => pattern.test(visible))) return 'framing';
  const texts = new Set([visible, withLetters(visible), ...encodedTexts(visible)]);
  if (texts.values().some(commands)) return 'instructions';
  return undefined;
}

/** Returns the mark of a fact as a field to spread into an answer. A client chooses the key and the tags as well as the value. */
export function markedField(fact: MarkableFact): { marked?: Mark } {
  const marked = markOfFact(fact);
  return marked === undefined ? {} : { marked };
}

export const isMarked = (fact: MarkableFact): boolean => markOfFact(fact) !== undefined;

const markOfFact = ({ key, value, tags = [] }: MarkableFact): Mark | undefined => markOf([value, key, ...tags].join('\n'));

interface MarkableFact {
  readonly key: string;
  readonly value: string;
  readonly tags?: readonly string[];
}

const ASCII = /^[\t\n\r -~]*$/;

/** Regular expressions with Unicode classes. They are compiled on first use, because compiling them is slow. */
const unicode = lazy(() => ({
  /** A flag of a region, such as Scotland: the only use of tag characters. */
  flag: /\u{1f3f4}[\u{e0030}-\u{e007a}]{2,6}\u{e007f}/gu,
  /** Characters that never belong into a text: controls, overrides of the direction, tags, and bytes as variation selectors. */
  never:
    /[\p{Cc}--[\t\n\r\x85]]|[\u202d\u202e\ufff9-\ufffb\u{e0000}-\u{e007f}]|(?<!\p{scx=Han})[\u{e0100}-\u{e01ef}]|[\ufe00-\ufe0f]{2}/v,
  /** Controls of the direction, which only text with letters of a right-to-left script needs. */
  direction: /[\u202a-\u202c\u2066-\u2069]/,
  rightToLeft: /[\p{scx=Arab}\p{scx=Hebr}\p{scx=Syrc}\p{scx=Thaa}\p{scx=Nkoo}]/u,
  /**
   * Invisible characters that a few tools leave in copied text. Joiners count only after Latin letters, digits and spaces, because
   * emoji and many scripts need them.
   */
  invisible:
    /[\u200b\u2060-\u2064\ufeff\u180e\u115f\u1160\u3164\uffa0]|(?<=[\p{scx=Latin}\p{N}\p{P}\s\u200b-\u200d])[\u200c\u200d]/gu,
  /** A word with letters of the Latin script and of another one whose letters can look the same. */
  mixed:
    /(?=[\p{L}\p{M}]{0,40}[A-Za-z])(?=[\p{L}\p{M}]{0,40}[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}])[\p{L}\p{M}]{2,40}/gu,
  ignorable: /\p{Default_Ignorable_Code_Point}/gu,
}));

/** Invisible characters of this number can spell a text. Fewer are left over from copying. */
const INVISIBLE_MAX = 2;
/** Look-alikes of Latin letters in other scripts, and the letters that they look like. */
const LOOK_ALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from(
    'аaеeоoрpсcхxуyіiјjѕsԁdһhԛqԝwкkмmтtвbнhгrпnαaεeοoρpνvιiκkτtυuχxγy'.matchAll(/(.)(.)/gu),
    ([, one = '', other = '']) => [one, other],
  ),
);

function hidesText(text: string): boolean {
  const { flag, never, direction, rightToLeft, invisible, mixed } = unicode();
  const withoutFlags = text.replace(flag, '');
  if (never.test(withoutFlags)) return true;
  if (direction.test(text) && !rightToLeft.test(text)) return true;
  if ((text.match(invisible)?.length ?? 0) > INVISIBLE_MAX) return true;
  return text.match(mixed)?.some(isDisguised) ?? false;
}

/** Whether every letter of another script looks like a Latin letter, and at least one stands beside Latin letters. */
const isDisguised = (word: string): boolean => word.length > 3 && /^[a-z]+$/.test(withLatinLetters(word.toLowerCase()));

const withLatinLetters = (word: string): string => Array.from(word, (letter) => LOOK_ALIKES[letter] ?? letter).join('');

/** Returns the text as a person sees it. */
const visibleForm = (text: string): string => text.normalize('NFKC').replace(unicode().ignorable, '');

/** Digits that stand for letters, as in "1gn0re". */
const DIGITS: Readonly<Record<string, string>> = { 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', '@': 'a', $: 's' };

const withLetters = (text: string): string =>
  text.replaceAll(/(?<=\p{L})[013457@$](?=\p{L})|(?<!\S)[1](?=\p{L}{2})/gu, (digit) => DIGITS[digit] ?? digit);

function commands(text: string): boolean {
  const unspaced = text.toLowerCase().replaceAll(SPACED, (spaced) => spaced.replaceAll(' ', ''));
  const plain = unspaced.replaceAll(/\s+/g, ' ');
  const { anyHint, hintAtPosition, owners } = hintTable();
  if (!anyHint.test(plain)) return false;
  const hinted = new Set(plain.matchAll(hintAtPosition).flatMap(([, hint = '']) => owners.get(hint) ?? []));
  return hinted.values().some((pattern) => pattern.test(plain));
}

/**
 * Finds the patterns to try. Most ordinary facts contain no hint, and one pass over a text is faster than a search for each hint. At
 * each position the longest hint matches, so it stands for the hints that it begins with.
 */
const hintTable = lazy(() => {
  const hints = [...new Set(COMMAND_PATTERNS.flatMap((each) => each.hints))].toSorted((one, other) => other.length - one.length);
  const source = hints.map((hint) => RegExp.escape(hint)).join('|');
  const ownersOf = (found: string): RegExp[] =>
    COMMAND_PATTERNS.filter((each) => each.hints.some((hint) => found.startsWith(hint))).map(({ pattern }) => pattern);
  return {
    anyHint: new RegExp(source),
    hintAtPosition: new RegExp(`(?=(${source}))`, 'g'),
    owners: new Map(hints.map((hint) => [hint, ownersOf(hint)])),
  };
});

/** Letters with a space after each of them. */
const SPACED = /(?<!\S)(?:\p{L} ){2,200}\p{L}(?!\S)/gu;

const ENCODED = /(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,20000}={0,2}/g;
const ENCODED_MAX = 16;

/** Returns the texts that are written in Base64. Most long words in Base64 are keys and digests, which are no text. */
function encodedTexts(text: string): string[] {
  const found = text.matchAll(ENCODED).take(ENCODED_MAX);
  return Array.from(found, ([word]) => Buffer.from(word, 'base64').toString()).filter((decoded) => ASCII.test(decoded));
}
