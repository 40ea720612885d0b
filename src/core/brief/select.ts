import type { Finder } from '../search/finder.ts';
import type { Hit } from '../search/search-index.ts';
import type { MemoryStore, Namespace } from '../store/store.ts';
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
/** Facts that are compared with a prompt. */
const COMPARED = 60;
/** A prompt says what it wants in its first sentences. What follows is often a pasted text. */
const PROMPT_CHARACTERS = 1000;
const CODE_BLOCK = /```.*?(?:```|$)/gs;

/*
 * `node bench/brief.ts` measures all constants below. They were fitted to the prompts of one person, and judged on those of another
 * (docs/meaning.md).
 */

/** Worth of a fact for the start of a session. What a prompt can find by itself is worth less than a rule for all work. */
const SESSION = { standing: 1, own: 1, news: 1 };
/** Exponent of a fact's length. Two short facts are worth more than a long one. */
const LENGTH_EXPONENT = 0.5;
const LINE_CHARACTERS = 40;

/** Worth of a fact for a prompt, apart from what it says. */
const PLACE = { standing: 0.3, own: 1.1, other: -2, none: 0, some: 0, news: 0.5 };
/** Worth of a fact for a prompt by what it says. Words decide alone if meanings were not compared. */
const CONTENT = { similarity: 8.5, information: 0.8, informationAlone: 2.9 };
/** More common words say nothing more. */
const MAX_INFORMATION = 1.6;
/** Maximum facts of a brief for a prompt, besides those that the session was told before. */
export const PROMPT_FACTS = 6;
/** A fact that is worth so much less than the best one is not shown. */
const MAX_BEHIND = 3;

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

/** Selects the facts that probably matter for a prompt, best first. There are none if the prompt probably needs none. */
export async function selectForPrompt({ finder, store }: SelectDeps, request: PromptRequest): Promise<readonly BriefFact[]> {
  const { namespace, client, project, comparesMeanings, signal, yieldTurn } = request;
  const prompt = request.prompt.replaceAll(CODE_BLOCK, ' ').trim().slice(0, PROMPT_CHARACTERS);
  if (prompt === '') return [];
  const asked = { texts: [prompt], limit: COMPARED, yieldTurn };
  const byWords = () => finder.find(namespace, { ...asked, mode: 'words' });
  // If the model is too slow, words answer.
  const { found } = comparesMeanings
    ? await finder.find(namespace, { ...asked, mode: 'both', signal }).catch(byWords)
    : await byWords();
  const reader = { client, project, now: store.now() };
  const candidates = found.map((hit) => ({ hit, place: placeOf(hit.fact, reader) }));
  if (!needsMemory(prompt, candidates)) return [];
  const ranked = candidates
    .map(({ hit, place }) => ({ fact: hit.fact, worth: worthOf(hit) + worthOfPlace(place) }))
    .toSorted((one, other) => other.worth - one.worth);
  const best = ranked[0]?.worth ?? 0;
  return ranked.filter(({ worth }) => worth >= best - MAX_BEHIND).map(({ fact }) => fact);
}

const worthOfPlace = ({ standing, project, news }: FactPlace): number =>
  (standing ? PLACE.standing : 0) + PLACE[project] + PLACE.news * news;

function worthOf({ similarity, information }: Hit): number {
  const shared = Math.min(MAX_INFORMATION, information);
  return similarity === undefined
    ? CONTENT.informationAlone * shared
    : CONTENT.similarity * similarity + CONTENT.information * shared;
}

/** Weights of the signs that a prompt needs a memory. The sum is positive if it probably does. */
const NEED = { base: -2.4, near: 2.2, best: 1.07, needless: -2.6, general: -2.2, personal: 2 };
const NEED_BY_WORDS = { base: -0.4, best: 0.42, needless: -3, general: -2.2, personal: 1.6 };
/** A prompt on the matters of a memory is near to several of its facts. */
const NEAR_FACTS = 6;

/** Whether a prompt probably needs a fact, from its words and from how near the facts are. */
function needsMemory(prompt: string, candidates: readonly { readonly hit: Hit; readonly place: FactPlace }[]): boolean {
  const { needless, general, personal } = signsOf(prompt);
  const best = Math.max(0, ...candidates.map(({ hit, place }) => worthOf(hit) + (place.project === 'other' ? PLACE.other : 0)));
  const near = candidates.filter(({ place }) => place.project !== 'other').map(({ hit }) => hit);
  const similarities = near.flatMap(({ similarity }) => (similarity === undefined ? [] : [similarity]));
  const nearest = similarities.toSorted((one, other) => other - one).slice(0, NEAR_FACTS);
  const nearness = nearest.reduce((sum, similarity) => sum + similarity, 0) / NEAR_FACTS;
  const weights = similarities.length > 0 ? NEED : { near: 0, ...NEED_BY_WORDS };
  const sum =
    weights.base +
    weights.near * nearness +
    weights.best * best +
    weights.needless * needless +
    (general ? weights.general : 0) +
    (personal ? weights.personal : 0);
  return sum > 0;
}
