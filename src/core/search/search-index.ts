import { FactIndex, type FactId, type NameFilter, type SearchableFact } from './fact-index.ts';
import type { NameCount } from './name-table.ts';
import { Ranking, type FactPredicate } from './ranking.ts';
import { fuseHits, type Hit, SearchRun } from './search-run.ts';

export type { FactId, SearchableFact } from './fact-index.ts';
export type { Hit } from './search-run.ts';

export interface SearchQuery extends Filter {
  /** Several texts ask the same in other words: their hits are fused. A blank one lists the newest. */
  readonly text: string | readonly string[];
  readonly limit: number;
}

/** Which facts may be found: those of which all of it holds. */
interface Filter extends NameFilter {
  readonly category?: string;
  /** Only what ends before this moment. */
  readonly expiresBefore?: number;
  /** What has expired by then is not found; without it, whatever is there is. */
  readonly now?: number;
}

/**
 * Ranked search over the facts it was told of, in memory only. Every call does a bounded amount of work, so a large
 * memory is told fact by fact between other things; what was told is found by the very next search.
 */
export class SearchIndex {
  #facts = new FactIndex();
  #ranking = new Ranking(this.#facts);

  get size(): number {
    return this.#facts.size;
  }

  /** The room it takes, as good as all of it outside the heap. */
  get bytes(): number {
    return this.#facts.bytes + this.#ranking.bytes;
  }

  /** Replaces what was told under the same id. */
  add(fact: SearchableFact & { readonly id: FactId }): void {
    this.#facts.add(fact.id, fact);
  }

  has(id: FactId): boolean {
    return this.#facts.has(id);
  }

  /** False when it was never told of it. */
  remove(id: FactId): boolean {
    return this.#facts.remove(id);
  }

  /** Drops everything at once; texts and terms are overwritten first. */
  clear(): void {
    this.#facts.clear();
    this.#facts = new FactIndex();
    this.#ranking = new Ranking(this.#facts);
  }

  /** The tags and clients that most facts have, at most so many of either. */
  names(most: number): { readonly tags: NameCount[]; readonly clients: NameCount[] } {
    return { tags: this.#facts.tags.mostUsed(most), clients: this.#facts.clients.mostUsed(most) };
  }

  /** Best first; among equals the newest. */
  search({ text, limit, ...filter }: SearchQuery): Hit[] {
    const texts = typeof text === 'string' ? [text] : [...new Set(text)];
    const asked = texts.filter((one) => one.trim() !== '');
    const tests = this.#tests(filter);
    if (tests === undefined) return [];
    const wanted: FactPredicate = (fact) => tests.every((holds) => holds(fact));
    const narrowed = tests.length > 1;
    const inquiry = new SearchRun({ facts: this.#facts, ranking: this.#ranking, wanted, narrowed, limit, texts: asked.length });
    const [only, ...more] = asked;
    if (only === undefined) return inquiry.newest();
    return more.length === 0 ? inquiry.search(only) : fuseHits(asked.map((one) => inquiry.search(one))).slice(0, limit);
  }

  /** Undefined when nothing can be: no fact is in that category. */
  #tests({ category, tag, client, expiresBefore, now = -Infinity }: Filter): FactPredicate[] | undefined {
    const facts = this.#facts;
    const tests: FactPredicate[] = [(fact) => facts.expiresAt(fact) > now];
    if (expiresBefore !== undefined) tests.push((fact) => facts.expiresAt(fact) < expiresBefore);
    if (category !== undefined) {
      const number = facts.findCategory(category);
      if (number === undefined) return undefined;
      tests.push((fact) => facts.isInCategory(fact, number));
    }
    if (tag !== undefined || client !== undefined) tests.push(facts.matchesNames({ tag, client }));
    return tests;
  }
}
