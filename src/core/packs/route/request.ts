import { lazy } from '../../../contract/schema.ts';
import { stopWords } from '../../search/stop-words.ts';
import { stemOf } from '../../search/vocabulary.ts';
import { foldText, type Word, wordsOf } from '../../search/words.ts';
import { type RequestAction, actionOf } from './actions.ts';

/** A word that is not a stop word, with its stem. */
export interface ContentWord {
  readonly term: string;
  readonly stem: string;
  readonly action: RequestAction | undefined;
}

export interface RouteRequest {
  /** The words of the request, without duplicate stems. */
  readonly words: readonly ContentWord[];
  /** Words from the conversation. They help to understand the request, but are not part of it. */
  readonly contextWords: readonly ContentWord[];
  /**
   * Stems of names, numbers and addresses in the request. Such details describe the object of the request, so they cannot
   * identify a pack.
   */
  readonly details: ReadonlySet<string>;
  /** All words of the request in order, including stop words. */
  readonly sentence: string;
  /** The requested action, if a verb or a question reveals it. */
  readonly action: RequestAction | undefined;
}

/** Replacements for "do not forget" in several languages, which means "remember". */
const REWRITES: readonly [RegExp, string][] = [
  [/\b(?:do not|don['’]?t|never)\s(?:ever\s|let\sme\s)?forget\b/gi, 'remember'],
  [/\bvergiss\s(?:bitte\s)?nicht\b/gi, 'merke'],
  [/\bn['’]oublie\spas\b/gi, 'retiens'],
  [/\bno\solvid\p{L}{1,4}\b/giu, 'recuerda'],
];

const QUESTION =
  /^(?:what|which|when|where|who|whose|why|how|do|does|did|is|are|was|were|have|has|had|was|welche|welcher|welches|wann|wo|wer|wie|que|quel|quelle|quels|quelles|cual|cuales|cuando|donde|quando|dove|wat|welke)\b/;
/** Matches polite requests, which look like questions. */
const POLITE_REQUEST = /^(?:can|could|would|will|please|kannst|konntest|bitte|peux|pourrais|puedes|podrias)\b/;

const ADDRESS = lazy(() => /\bhttps?:\/\/\S{1,2000}/giu);
const REPOSITORY = lazy(() => /(?<![\p{L}\d/.])[a-z\d][\w.-]{0,100}\/[\w.-]{1,100}/giu);
const DETAIL = lazy(
  () => /["“”„`«»][^"“”„`«»\n]{1,200}["“”„`«»]|\S{0,100}[\d@#_/\\]\S{0,100}|(?<=\p{L}[,]?\s)\p{Lu}[\p{L}\d'-]{0,60}/gu,
);

export function parseRouteRequest(intent: string, context = ''): RouteRequest {
  const text = REWRITES.reduce((rewritten, [pattern, word]) => rewritten.replace(pattern, word), intent);
  const words = contentWordsIn(text);
  const details = new Set([...intent.matchAll(DETAIL())].flatMap(([detail]) => contentWordsIn(detail).map(({ stem }) => stem)));
  const first = words.find(({ action, stem }) => action !== undefined && !details.has(stem))?.action;
  const bare = foldText(intent).trim();
  const isQuestion = !POLITE_REQUEST.test(bare) && (QUESTION.test(bare) || /[?？]\s*$/.test(bare));
  return {
    words: distinctByStem([...words, ...impliedWords(intent)]),
    contextWords: distinctByStem([...contentWordsIn(context), ...impliedWords(context)]),
    details,
    sentence: joinWords(wordsOf(text)),
    action: isQuestion ? 'read' : first,
  };
}

const impliedWords = (text: string): ContentWord[] => [
  ...(text.search(ADDRESS()) >= 0 ? contentWordsIn('url page') : []),
  ...(text.replace(ADDRESS(), '').search(REPOSITORY()) >= 0 ? contentWordsIn('repository') : []),
];

export function contentWordsIn(text: string): ContentWord[] {
  const words = wordsOf(text).filter(({ parts }) => parts === 0);
  return words.flatMap(({ term }, index) =>
    stopWords.has(term) && actionOf(term) === undefined
      ? []
      : [{ term, stem: stemOf(term), action: actionOf(term, words[index + 1]?.term) }],
  );
}

export const distinctByStem = (words: readonly ContentWord[]): ContentWord[] => [
  ...new Map(words.map((word) => [word.stem, word])).values(),
];

/** Joins words into a single string that can be searched for phrases. */
export const joinWords = (words: readonly Word[]): string => {
  let phrase = ' ';
  for (const { term, parts } of words) if (parts === 0) phrase += `${term} `;
  return phrase;
};
