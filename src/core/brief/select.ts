import { foldCase } from '../../contract/schema.ts';
import { DAY_MS } from '../../contract/units.ts';
import type { SearchableFact } from '../search/fact-index.ts';
import type { Finder } from '../search/finder.ts';
import type { MemoryStore, Namespace } from '../store/store.ts';

/** A fact that a brief can show. */
export type BriefFact = Pick<SearchableFact, 'key' | 'value' | 'category' | 'tags' | 'definedBy' | 'updatedAt'> & {
  readonly client: string;
};

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

/** Tag of the facts about a project. Its end is the name of the repository's root folder. */
const PROJECT_TAG = 'project:';
const STANDING = ['preferences', 'conventions', 'decisions'];
/** Facts of each group to read. It is more than a brief can show, because some of them may have been told before. */
const GROUP = 20;
const RECENT_MS = 7 * DAY_MS;
const MIN_PROBABILITY = 0.5;
const PROMPT_FACTS = 5;

/**
 * Selects the facts for the start of a session, most important first: what belongs to the project, standing preferences and
 * conventions, and what other clients learned lately. The caller leaves out those that it must not show, and those that do not fit.
 */
export async function selectForSession({ finder, store }: SelectDeps, request: BriefRequest): Promise<readonly BriefFact[]> {
  const { namespace, client, project, yieldTurn } = request;
  const newest = async (filter: { readonly category?: string; readonly tag?: string }): Promise<readonly BriefFact[]> => {
    const { found } = await finder.find(namespace, { texts: [''], mode: 'words', limit: GROUP, yieldTurn, ...filter });
    return found.map(({ fact }) => fact);
  };
  const groups = await Promise.all([
    ...(project === undefined ? [] : [newest({ tag: PROJECT_TAG + project })]),
    ...STANDING.map((category) => newest({ category })),
    newest({}).then((facts) => facts.filter((fact) => fact.client !== client && fact.updatedAt > store.now() - RECENT_MS)),
  ]);
  const byKey = new Map(groups.flat().map((fact) => [fact.key, fact]));
  return [...byKey.values()].filter((fact) => !belongsElsewhere(fact, project));
}

/** Selects the facts that probably matter for a prompt, best first. Usually there are none. */
export async function selectForPrompt({ finder }: SelectDeps, request: PromptRequest): Promise<readonly BriefFact[]> {
  const { namespace, prompt, comparesMeanings, signal, yieldTurn } = request;
  const asked = { texts: [prompt], limit: PROMPT_FACTS, yieldTurn };
  const byWords = () => finder.find(namespace, { ...asked, mode: 'words' });
  // If the model is too slow, words answer.
  const { found } = comparesMeanings ? await finder.find(namespace, { ...asked, signal }).catch(byWords) : await byWords();
  return found.filter(({ probability }) => probability >= MIN_PROBABILITY).map(({ fact }) => fact);
}

/** Whether a fact is tagged as belonging to projects, but not to this one. */
function belongsElsewhere({ tags }: BriefFact, project: string | undefined): boolean {
  const projects = tags.filter((tag) => tag.startsWith(PROJECT_TAG)).map((tag) => foldCase(tag.slice(PROJECT_TAG.length)));
  return projects.length > 0 && (project === undefined || !projects.includes(foldCase(project)));
}
