import type { Finder } from '../search/finder.ts';
import type { MemoryStore, Namespace } from '../store/store.ts';
import { associatedWords } from './associations.ts';
import { type BriefFact, type FactPlace, placeOf, PROJECT_TAG, STANDING_WORDS } from './fact-place.ts';
import { signsOf } from './prompt-signs.ts';

export interface SelectDeps {
  readonly finder: Pick<Finder, 'find'>;
  readonly store: Pick<MemoryStore, 'now'>;
}

interface BriefRequest {
  readonly namespace: Namespace;
  /** The client that asks. */
  readonly client: string;
  /** Name of the root folder of the repository, if the client is in a folder. */
  readonly project: string | undefined;
  /** Waits for a turn. Called after each wait for the model, before the search resumes. */
  readonly yieldTurn: () => Promise<void>;
}

export interface PromptRequest extends BriefRequest {
  readonly prompt: string;
  /** Whether meanings can be compared without waiting for the model to load. */
  readonly comparesMeanings: boolean;
  /** Aborted when the answer can wait for meanings no longer. */
  readonly signal: AbortSignal;
}

/** Facts of each group to read. It is more than a brief can show, because some of them may have been told before. */
const GROUP = 40;
/** Facts that are compared with a prompt: by its words, by words of its matters, and by its meaning and words. */
const COMPARED = { words: 40, matters: 40, both: 100 };
/** More words of the matters of a prompt name no matter any more. */
const MAX_MATTER_WORDS = 64;
/** A prompt says what it wants in its first sentences. What follows is often a pasted text. */
const PROMPT_CHARACTERS = 600;
const CODE_BLOCK = /```.*?(?:```|$)/gs;

/*
 * `node bench/brief.ts` measures all constants below. They were fitted to the prompts of one person, and judged on those of another
 * (docs/meaning.md).
 */

/** Worth of a fact for the start of a session. What a prompt can find by itself is worth less than a rule for all work. */
const SESSION = { standing: 0.5, own: 1, news: 1 };
/** Exponent of a fact's length. Two short facts are worth more than a long one. */
const LENGTH_EXPONENT = 0.5;
const LINE_CHARACTERS = 40;

/** Worth of a fact for a prompt, apart from what it says. */
const PLACE = { standing: 0.3, own: 0.7, other: -2, none: 0, some: 0, news: 0.5 };
/** Worth of a fact for a prompt by what it says, with meanings and by words alone. */
const WITH_MEANING = { similarity: 8.5, information: 0.8, association: 0.7 };
const BY_WORDS = { similarity: 0, information: 2.9, association: 1.2 };
/** More common words, or words of the same matter, say nothing more. */
const MOST = { information: 2.5, association: 2 };
/** Maximum facts of a brief for a prompt, besides those that the session was told before. */
export const PROMPT_FACTS = 6;
/** A fact that is worth so much less than the best one is not shown. */
const MAX_BEHIND = 4;

/** Weights of the signs that a prompt needs a memory. The sum is positive if it probably does. */
const NEED = {
  withMeaning: { base: -2.8, near: 3.5, best: 0.83, needless: -4.2, general: -2, personal: 3, order: 1.25 },
  byWords: { base: -1.8, near: 0, best: 0.57, needless: -4.3, general: -1.7, personal: 3, order: 1.25 },
};
/** A question is not about the world in general if a fact shares this information with it, and this share of all its words. */
const ANSWER = { information: 1.5, coverage: 0.4 };
/** Words of the same matter say more about which fact is meant than about whether any is needed. */
const ASSOCIATION_NEEDS = 0.5;
/** A prompt on the matters of a memory is near to several of its facts. */
const NEAR_FACTS = 6;

/** Selects the facts for the start of a session, best first. The caller leaves out those that it must not show, and those that do not fit. */
export async function selectForSession({ finder, store }: SelectDeps, request: BriefRequest): Promise<readonly BriefFact[]> {
  const { namespace, client, project, yieldTurn } = request;
  const reader = { client, project, now: store.now() };
  const read = async (text: string, filter: { readonly category?: string; readonly tag?: string } = {}): Promise<BriefFact[]> => {
    const { found } = await finder.find(namespace, { texts: [text], mode: 'words', limit: GROUP, yieldTurn, ...filter });
    return found.map(({ fact }) => fact);
  };
  const groups = await Promise.all([
    read(''),
    ...spellingsOf(project).map((name) => read('', { tag: PROJECT_TAG + name })),
    ...STANDING_WORDS.flatMap((word) => [read('', { category: word }), read(word)]),
  ]);
  const facts = [...new Map(groups.flat().map((fact) => [fact.key, fact])).values()];
  return facts
    .map((fact) => ({ fact, place: placeOf(fact, reader) }))
    .filter(({ place }) => place.project === 'own' || place.project === 'none')
    .map(({ fact, place }) => ({ fact, worth: worthInSession(place) / lengthOf(fact) ** LENGTH_EXPONENT }))
    .filter(({ worth }) => worth > 0)
    .toSorted((one, other) => other.worth - one.worth || other.fact.updatedAt - one.fact.updatedAt)
    .map(({ fact }) => fact);
}

/** A tag can be written in lower case. */
const spellingsOf = (project: string | undefined): readonly string[] =>
  project === undefined ? [] : [...new Set([project, project.toLowerCase()])];

const worthInSession = ({ standing, project, news }: FactPlace): number =>
  (standing ? SESSION.standing : 0) + (project === 'own' ? SESSION.own : 0) + SESSION.news * news;

const lengthOf = ({ key, value }: BriefFact): number => LINE_CHARACTERS + key.length + value.length;

interface Candidate {
  readonly fact: BriefFact;
  readonly place: FactPlace;
  /** How similar it is to the prompt, or 0 if unknown. */
  readonly similarity: number;
  /** The information of the words that it shares with the prompt, and with the matters of the prompt. */
  readonly information: number;
  readonly association: number;
  /** Whether it has most words of the prompt, and more than one rare one. */
  readonly mayAnswer: boolean;
}

/** Selects the facts that probably matter for a prompt, best first. There are none if the prompt probably needs none. */
export async function selectForPrompt(deps: SelectDeps, request: PromptRequest): Promise<readonly BriefFact[]> {
  const prompt = request.prompt.replaceAll(CODE_BLOCK, ' ').trim().slice(0, PROMPT_CHARACTERS);
  if (prompt === '') return [];
  const { candidates, hasMeaning } = await candidatesFor(deps, prompt, request);
  if (!needsMemory(prompt, candidates, hasMeaning)) return [];
  const weights = hasMeaning ? WITH_MEANING : BY_WORDS;
  const ranked = candidates
    .map((candidate) => ({ ...candidate, worth: worthOf(candidate, weights) + worthOfPlace(candidate.place) }))
    .toSorted((one, other) => other.worth - one.worth);
  const best = ranked[0]?.worth ?? 0;
  return ranked.filter(({ worth }) => worth >= best - MAX_BEHIND).map(({ fact }) => fact);
}

/** Finds the facts that share words or meaning with a prompt, or words with its matters. */
async function candidatesFor(
  { finder, store }: SelectDeps,
  prompt: string,
  { namespace, client, project, comparesMeanings, signal, yieldTurn }: PromptRequest,
): Promise<{ readonly candidates: readonly Candidate[]; readonly hasMeaning: boolean }> {
  const byWords = (text: string, limit: number) => finder.find(namespace, { texts: [text], mode: 'words', limit, yieldTurn });
  const byMeaning = () => finder.find(namespace, { texts: [prompt], mode: 'both', limit: COMPARED.both, yieldTurn, signal });
  const words = associatedWords(prompt).slice(0, MAX_MATTER_WORDS);
  const [{ found }, { found: associated }] = await Promise.all([
    // If the model is too slow, words answer.
    comparesMeanings ? byMeaning().catch(() => byWords(prompt, COMPARED.words)) : byWords(prompt, COMPARED.words),
    words.length === 0 ? { found: [] } : byWords(words.join(' '), COMPARED.matters),
  ]);
  const associations = new Map(associated.map(({ fact, information }) => [fact.key, information]));
  const known = new Set(found.map(({ fact }) => fact.key));
  const others = associated
    .filter(({ fact }) => !known.has(fact.key))
    .map(({ fact }) => ({ fact, information: 0, coverage: 0, similarity: 0 }));
  const reader = { client, project, now: store.now() };
  const candidates = [...found, ...others].map(({ fact, information, coverage, similarity = 0 }) => ({
    fact,
    place: placeOf(fact, reader),
    similarity,
    information: Math.min(MOST.information, information),
    association: Math.min(MOST.association, associations.get(fact.key) ?? 0),
    mayAnswer: information >= ANSWER.information && coverage >= ANSWER.coverage,
  }));
  return { candidates, hasMeaning: found.some(({ similarity }) => similarity !== undefined) };
}

const worthOf = ({ similarity, information, association }: Candidate, weights: typeof WITH_MEANING): number =>
  weights.similarity * similarity + weights.information * information + weights.association * association;

const worthOfPlace = ({ standing, project, news }: FactPlace): number =>
  (standing ? PLACE.standing : 0) + PLACE[project] + PLACE.news * news;

/** Whether a prompt probably needs a fact, from its words and from how near the facts are. */
function needsMemory(prompt: string, candidates: readonly Candidate[], hasMeaning: boolean): boolean {
  const { needless, general, personal, order } = signsOf(prompt);
  const content = hasMeaning ? WITH_MEANING : BY_WORDS;
  const weights = { ...content, association: ASSOCIATION_NEEDS * content.association };
  const worths = candidates.map(
    (candidate) => worthOf(candidate, weights) + (candidate.place.project === 'other' ? PLACE.other : 0),
  );
  const nearest = candidates
    .flatMap(({ similarity, place }) => (place.project === 'other' ? [] : [similarity]))
    .toSorted((one, other) => other - one)
    .slice(0, NEAR_FACTS);
  const near = nearest.reduce((sum, similarity) => sum + similarity, 0) / NEAR_FACTS;
  const isAnswered = candidates.some(({ mayAnswer, place }) => mayAnswer && place.project !== 'other');
  const need = hasMeaning ? NEED.withMeaning : NEED.byWords;
  const sum =
    need.base +
    need.near * near +
    need.best * Math.max(0, ...worths) +
    need.needless * needless +
    (general && !isAnswered ? need.general : 0) +
    (personal ? need.personal : 0) +
    (order ? need.order : 0);
  return sum > 0;
}
