import { foldCase } from '../../contract/schema.ts';
import { DAY_MS } from '../../contract/units.ts';
import type { SearchableFact } from '../search/fact-index.ts';

/** A fact that a brief can show. */
export type BriefFact = Pick<SearchableFact, 'key' | 'value' | 'category' | 'tags' | 'definedBy' | 'updatedAt'> & {
  readonly client: string;
};

/** Who reads a brief, and where. */
export interface Reader {
  readonly client: string;
  /** Name of the root folder of the repository, if the client is in a folder. */
  readonly project: string | undefined;
  readonly now: number;
}

/** What a fact is to a reader, apart from what it says. */
export interface FactPlace {
  /** Whether it is a lasting rule, such as a preference, rather than a detail that is needed once. */
  readonly standing: boolean;
  /** Whether it is tagged as belonging to the reader's project, to other projects only, or to none. `some` if the reader has none. */
  readonly project: 'own' | 'other' | 'none' | 'some';
  /** From 1 for a fact that another client stored just now, to 0.5 for a fact of last week, and 0 for other facts. */
  readonly news: number;
}

/** Tag of the facts about a project. Its end is the name of the repository's root folder. */
export const PROJECT_TAG = 'project:';
/** Returns the name of a project: the last name of its folder, of any operating system. Undefined without a name. */
export const projectOf = (folder: string | undefined): string | undefined =>
  folder
    ?.split(/[/\\]+/)
    .findLast((name) => name !== '')
    ?.normalize('NFC');

/** Words for lasting rules, as the category or the first part of a key. */
export const STANDING_WORDS = ['preferences', 'conventions', 'decisions', 'rules', 'style'] as const;
const standing = new RegExp(`^(?:${STANDING_WORDS.map((word) => word.replace(/s$/, 's?')).join('|')})$`);
const NEWS_MS = 7 * DAY_MS;

export function placeOf(fact: BriefFact, reader: Reader): FactPlace {
  const projects = fact.tags.filter((tag) => tag.startsWith(PROJECT_TAG)).map((tag) => foldCase(tag.slice(PROJECT_TAG.length)));
  const isOwn = reader.project !== undefined && projects.includes(foldCase(reader.project));
  const age = Math.max(0, reader.now - fact.updatedAt);
  return {
    standing: [fact.category, ...fact.key.toLowerCase().split(/[/.:]/, 1)].some((name) => standing.test(name)),
    project: projects.length === 0 ? 'none' : reader.project === undefined ? 'some' : isOwn ? 'own' : 'other',
    news: fact.client === reader.client || age > NEWS_MS ? 0 : 1 - age / (2 * NEWS_MS),
  };
}
