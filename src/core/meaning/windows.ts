import { isExplicitCategory } from '../search/fact-index.ts';
import type { Entry } from '../store/store.ts';

/** Maximum windows of a fact. Text after them is found by its words only. */
const MAX_WINDOWS = 8;
/**
 * Maximum length of the text in a window, in tokens of a model, as estimated below. Longer windows find less, because a vector is an
 * average, and they take more time: 80 words take about 100 ms.
 */
const WINDOW_TOKENS = 110;
const MAX_NAME_CHARACTERS = 160;
/** An ASCII word has about four characters for each token. Most models read other scripts character by character. */
const TOKENS_OF_ASCII = 1 / 4;
const LAST_ASCII = 0x7f;

const SENTENCE_END = /[.!?;:\n。！？；]\s/gu;
const SPACE = /\s/gu;
const NAME_SEPARATOR = /[/_.:-]+/g;

/**
 * Returns the texts whose vectors represent a fact. Each begins with the words of the key, because the key often names the matter, and
 * the value only the details. A long value is divided into windows, of which the most similar one counts.
 */
export function windowsOf(fact: Pick<Entry, 'key' | 'category' | 'value'>): string[] {
  const name = nameOf(fact).slice(0, MAX_NAME_CHARACTERS);
  return partsOf(fact.value).map((part) => `${name}: ${part}`);
}

/** Returns the words of the key, after those of the category if the key lacks them. */
function nameOf({ key, category }: Pick<Entry, 'key' | 'category'>): string {
  const words = key.replaceAll(NAME_SEPARATOR, ' ').trim();
  if (!isExplicitCategory(category)) return words;
  const known = new Set(words.toLowerCase().split(' '));
  const added = category.replaceAll(NAME_SEPARATOR, ' ').trim();
  return added.split(' ').every((word) => known.has(word)) ? words : `${added} ${words}`;
}

function partsOf(value: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < value.length && parts.length < MAX_WINDOWS;) {
    const end = endOfPart(value, at);
    const part = value.slice(at, end).trim();
    if (part !== '') parts.push(part);
    at = end;
  }
  return parts.length > 0 ? parts : [''];
}

/** Returns the end of the part that begins at `from`: after a sentence if possible, otherwise after a word. */
function endOfPart(value: string, from: number): number {
  let at = from;
  for (let tokens = 0; at < value.length;) {
    const code = value.codePointAt(at) ?? 0;
    tokens += code <= LAST_ASCII ? TOKENS_OF_ASCII : 1;
    if (tokens > WINDOW_TOKENS) break;
    at += code > 0xffff ? 2 : 1;
  }
  if (at === value.length) return at;
  const text = value.slice(from, at);
  return from + (lastIn(text, SENTENCE_END) ?? lastIn(text, SPACE) ?? text.length);
}

/** Returns the end of the last match in the second half of the text. */
function lastIn(text: string, pattern: RegExp): number | undefined {
  let last: number | undefined;
  pattern.lastIndex = Math.floor(text.length / 2);
  while (pattern.test(text)) last = pattern.lastIndex;
  return last;
}
