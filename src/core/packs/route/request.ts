import { later } from '../../../contract/later.ts';
import { plain } from '../../search/plain.ts';
import { questionWords } from '../../search/question-words.ts';
import { stemOf } from '../../search/stem.ts';
import { wordsOf } from '../../search/words.ts';
import { type Deed, deedOf } from './deeds.ts';
import { phraseOf } from './phrase.ts';

/** A word that tells something, by the stem that its forms share. */
export interface Telling {
  readonly term: string;
  readonly stem: string;
  readonly deed: Deed | undefined;
}

/** What is asked for. */
export interface Request {
  /** Each once. */
  readonly words: readonly Telling[];
  /** What else is going on, which helps to understand and asks for nothing. */
  readonly around: readonly Telling[];
  /** Names, numbers and addresses: what it is to be done to, by which nothing can be known. */
  readonly details: ReadonlySet<string>;
  /** Every word in its place, those too that a sentence is made of. */
  readonly sentence: string;
  /** What is to be done, as far as a verb or a question says so. */
  readonly deed: Deed | undefined;
}

/** What is not to be forgotten is to be remembered. */
const turned: readonly [RegExp, string][] = [
  [/\b(?:do not|don['’]?t|never)\s(?:ever\s|let\sme\s)?forget\b/gi, 'remember'],
  [/\bvergiss\s(?:bitte\s)?nicht\b/gi, 'merke'],
  [/\bn['’]oublie\spas\b/gi, 'retiens'],
  [/\bno\solvid\p{L}{1,4}\b/giu, 'recuerda'],
];

const asking =
  /^(?:what|which|when|where|who|whose|why|how|do|does|did|is|are|was|were|have|has|had|was|welche|welcher|welches|wann|wo|wer|wie|que|quel|quelle|quels|quelles|cual|cuales|cuando|donde|quando|dove|wat|welke)\b/;
/** Asked politely, not out of curiosity. */
const polite = /^(?:can|could|would|will|please|kannst|konntest|bitte|peux|pourrais|puedes|podrias)\b/;

const ADDRESS = later(() => /\bhttps?:\/\/\S{1,2000}/giu);
const REPOSITORY = later(() => /(?<![\p{L}\d/.])[a-z\d][\w.-]{0,100}\/[\w.-]{1,100}/giu);
const DETAIL = later(
  () => /["“”„`«»][^"“”„`«»\n]{1,200}["“”„`«»]|\S{0,100}[\d@#_/\\]\S{0,100}|(?<=\p{L}[,]?\s)\p{Lu}[\p{L}\d'-]{0,60}/gu,
);

export function readRequest(intent: string, context = ''): Request {
  const text = turned.reduce((turning, [pattern, word]) => turning.replace(pattern, word), intent);
  const words = tellingIn(text);
  const details = new Set([...intent.matchAll(DETAIL())].flatMap(([detail]) => tellingIn(detail).map(({ stem }) => stem)));
  const first = words.find(({ deed, stem }) => deed !== undefined && !details.has(stem))?.deed;
  const bare = plain(intent).trim();
  const curious = !polite.test(bare) && (asking.test(bare) || /[?？]\s*$/.test(bare));
  return {
    words: distinct([...words, ...implied(intent)]),
    around: distinct([...tellingIn(context), ...implied(context)]),
    details,
    sentence: phraseOf(wordsOf(text)),
    deed: curious ? 'read' : first,
  };
}

/** What an address or the name of a repository says without words. */
const implied = (text: string): Telling[] => [
  ...(text.search(ADDRESS()) >= 0 ? tellingIn('url page') : []),
  ...(text.replace(ADDRESS(), '').search(REPOSITORY()) >= 0 ? tellingIn('repository') : []),
];

/** Without the words a sentence is made of. */
export function tellingIn(text: string): Telling[] {
  const words = wordsOf(text).filter(({ parts }) => parts === 0);
  return words.flatMap(({ term }, index) =>
    questionWords.has(term) && deedOf(term) === undefined
      ? []
      : [{ term, stem: stemOf(term), deed: deedOf(term, words[index + 1]?.term) }],
  );
}

export const distinct = (words: readonly Telling[]): Telling[] => [...new Map(words.map((word) => [word.stem, word])).values()];
