import { CATEGORY } from '../../contract/categories.ts';
import { TAGS } from '../../contract/limits.ts';
import { PROJECT_TAG } from '../brief/fact-place.ts';
import { isMarked } from '../inbox/marks.ts';
import { findSecret } from '../operations/secret-guard.ts';
import { ownWordsOf } from './own-words.ts';
import { NO_STATEMENT, PASSING, type StatementKind, STATEMENTS } from './statement-patterns.ts';
import { slug, topicOf } from './topics.ts';

/** A fact that the person may want to keep. */
export interface CapturedStatement {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
}

/** Statements in one prompt. A prompt with more of them is probably a document that was pasted. */
const STATEMENTS_MAX = 3;
const VALUE = { characters: 300, words: 3 };
const PROMPT_CHARACTERS = 8000;
/** A longer name does not fit into a tag. */
const PROJECT_CHARACTERS = TAGS.characters - PROJECT_TAG.length;

/**
 * Returns the statements of a prompt that sound lasting, such as preferences, conventions, decisions and corrections (R-CAPT-01). Only
 * the person's own words count. Uses rules and no model. If in doubt, a sentence is left out. `project` is the name of the project that
 * the person works on.
 */
export function captureFrom(prompt: string, project?: string): readonly CapturedStatement[] {
  const text = prompt.slice(0, PROMPT_CHARACTERS);
  // A prompt with a secret in it may repeat parts of the secret elsewhere. Suspicious text was probably pasted.
  if (findSecret(text) || isMarked({ key: '', value: text })) return [];
  const { sentences, restore } = ownWordsOf(text);
  const found = new Map<string, CapturedStatement>();
  for (const sentence of sentences) {
    const statement = statementOf(sentence) ?? statementOf(lastClauseOf(sentence));
    if (!statement) continue;
    const captured = factOf({ kind: statement.kind, value: restore(statement.value) }, project);
    if (captured) found.set(captured.key, captured);
  }
  return found.size > STATEMENTS_MAX ? [] : [...found.values()];
}

interface Said {
  readonly kind: StatementKind;
  readonly value: string;
}

function statementOf(sentence: string): Said | undefined {
  if (/\?["”’)]*$/.test(sentence)) return undefined;
  let said = withoutLeadIn(sentence);
  if (NO_STATEMENT.some((pattern) => pattern.test(said))) return undefined;
  let kind: StatementKind | undefined;
  // A marker such as "remember that" can stand before another one.
  for (let turn = 0; turn < 3; turn += 1) {
    const isPassing = kind === undefined && PASSING.some((pattern) => pattern.test(mainClauseOf(said)));
    const rule = STATEMENTS.find((each) => !(each.implicit && isPassing) && each.pattern.test(said));
    if (!rule) break;
    kind = kind === undefined || kind === 'remember' ? rule.kind : kind;
    if (rule.replacement === undefined) break;
    said = withoutLeadIn(said.replace(rule.pattern, rule.replacement));
  }
  if (kind === undefined || NO_STATEMENT.some((pattern) => pattern.test(said))) return undefined;
  const value = withoutTail(said);
  return standsAlone(value) ? { kind, value } : undefined;
}

/** Returns the part of a sentence after an order or an introduction, such as "Book a table, and I only drink decaf". */
const lastClauseOf = (sentence: string): string =>
  /(?:, (?:and|but|und|aber) |; |: | [–—-] )(?=(?:i|i['’]m|we|our|my|always|never|please|ich|wir|unsere?|meine?|immer|nie|niemals|[\p{L}]+s (?:always|never))\b)(.*)$/iu.exec(
    sentence,
  )?.[1] ?? '';

/** The part before the first comma. What follows is often a reason or an order, but a contradiction belongs to the sentence. */
const mainClauseOf = (said: string): string =>
  /[,;] ?(?:\S+ )?(?:but|aber|although|obwohl|except)\b/i.test(said) ? said : (/^[^,;]*/.exec(said)?.[0] ?? said);

const LEAD_IN =
  /^(?:(?:(?:no|nope|nah|wrong|incorrect|nein|falsch|yes|yep|ja|stop)(?: (?:no|nein))*[,.:;!]+|(?:that['’]s|this is|that is|das ist) (?:wrong|not right|incorrect|falsch)[,.:;!]+|(?:and|but|so|also|ok|okay|oh|well|hey|hi|hello|btw|by the way|ps|please|pls|actually|just|sorry|listen|one more thing|another thing|und|aber|bitte|übrigens|ach|hallo|eigentlich)\b(?!-)[,.:;!]*|[-–—…]+)\s*)+/iu;

const withoutLeadIn = (sentence: string): string => sentence.replace(LEAD_IN, '');

/** What follows is an order for now, or politeness. */
const TAILS: readonly RegExp[] = [
  /,? (?:so|and so|therefore|hence|deshalb|daher|darum) (?!that\b|no\b|never\b|always\b|do ?n[o'’]?t\b|keine?\b|nie\b)[^]*$/i,
  /(?:[,;]| and| und) (?:and |und )?(?:please |bitte )?(?:sign|put|add|set|give|make|update|fix|write|draft|show|explain|suggest|plan|find|schedule|open|send|create|change|call me|remove|delete|rename|such|setze?|schreib|mach|gib|zeig|erklär|nimm|trag|korrigiere|lege?|fass)\b(?= (?:me|the|it|a|an|my|this|that|them|us|in|mir|das|die|den|es|ihn|uns|bitte)\b)[^]*$/i,
  /, (?:by the way|btw|übrigens|just so you know|fyi|as you know)[.!]*$/i,
  /, just \S[^]*$/i,
  /[, ]+(?:pls|please|thanks|thank you|thx|ok|okay|bitte|danke)[.!]*$/i,
  /[\s.!,;:–—-]+$/,
];

const withoutTail = (said: string): string => TAILS.reduce((text, tail) => text.replace(tail, ''), said);

/** A sentence whose subject or object is in another sentence. */
const DANGLING =
  /^(?:(?:it|that|they|those|these|he|she|them|there|dies|sie|er)\b(?!['’]s (?:spelled|spelt|written|pronounced|called)| is (?:spelled|called)| (?:was|is|has been) (?:decided|agreed|settled))|this (?!project|repo|codebase|code base|team|company|product|library|monorepo|app|api|service))|\b(?:above|below|as i said|wie oben|wie gesagt)\b|^(?:always|never) \S+ (?:to |at |on |in |with )?(?:it|them|that|this|those|these)\b|^(?:\S+ ){0,5}(?:it|that|this|so|them|das|dies|es)$/iu;

function standsAlone(value: string): boolean {
  const words = value.split(/\s+/).length;
  const fewest = /^(?:always|never|immer|nie|niemals)\b/i.test(value) ? 2 : VALUE.words;
  return words >= fewest && value.length <= VALUE.characters && !DANGLING.test(value);
}

const CATEGORIES: Readonly<Record<StatementKind, string>> = {
  convention: 'conventions',
  preference: 'preferences',
  decision: 'decisions',
  person: CATEGORY.default,
  project: 'project_context',
  remember: 'project_context',
};

/** Rules for the assistant are preferences of the person. */
const FOR_ASSISTANT =
  /\b(?:your (?:answers?|repl(?:y|ies)|responses?)|answers?|reply|respond|explain|tell me|ask me|ask before|summary|summarise|apologi[sz]e|before you (?:tell|install|delete|say)|antworten?|antworte|erkläre?)\b/i;
const OF_PERSON = /^(?:i|i['’]m|my|ich|mein)\b/i;

function factOf({ kind, value }: Said, project: string | undefined): CapturedStatement | undefined {
  const category = categoryOf(kind, value);
  const topic = topicOf(value);
  if (topic === '') return undefined;
  const isPersonal = category === 'preferences' || category === CATEGORY.default;
  const name = isPersonal || project === undefined || project.length > PROJECT_CHARACTERS ? '' : slug(project);
  const root = category === CATEGORY.default ? 'person' : category;
  return {
    key: [root, name, topic].filter((part) => part !== '').join('/'),
    value: `${value[0]?.toUpperCase() ?? ''}${value.slice(1)}.`,
    category,
    tags: name === '' || project === undefined ? [] : [PROJECT_TAG + project],
  };
}

function categoryOf(kind: StatementKind, value: string): string {
  if (kind === 'convention' && FOR_ASSISTANT.test(value)) return CATEGORIES.preference;
  return kind === 'remember' && OF_PERSON.test(value) ? CATEGORIES.person : CATEGORIES[kind];
}
