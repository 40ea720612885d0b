import { FactIndex, type Id, type Named, type Searchable } from './fact-index.ts';
import { fuse, type Hit, Inquiry } from './inquiry.ts';
import type { NameCount } from './names.ts';
import { Ranking, type Wanted } from './ranking.ts';

export type { Id, Searchable } from './fact-index.ts';
export type { Hit } from './inquiry.ts';

export interface Search extends Filter {
  /** Several texts ask the same in other words: their hits are fused. A blank one lists the newest. */
  readonly text: string | readonly string[];
  readonly limit: number;
}

/** Which facts may be found: those of which all of it holds. */
interface Filter extends Named {
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
  add(fact: Searchable & { readonly id: Id }): void {
    this.#facts.add(fact.id, fact);
  }

  has(id: Id): boolean {
    return this.#facts.has(id);
  }

  /** False when it was never told of it. */
  remove(id: Id): boolean {
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
  search({ text, limit, ...filter }: Search): Hit[] {
    const texts = typeof text === 'string' ? [text] : [...new Set(text)];
    const asked = texts.filter((one) => one.trim() !== '');
    const tests = this.#tests(filter);
    if (tests === undefined) return [];
    const wanted: Wanted = (fact) => tests.every((holds) => holds(fact));
    const narrowed = tests.length > 1;
    const inquiry = new Inquiry({ facts: this.#facts, ranking: this.#ranking, wanted, narrowed, limit, texts: asked.length });
    const [only, ...more] = asked;
    if (only === undefined) return inquiry.newest();
    return more.length === 0 ? inquiry.ask(only) : fuse(asked.map((one) => inquiry.ask(one))).slice(0, limit);
  }

  /** Undefined when nothing can be: no fact is in that category. */
  #tests({ category, tag, client, expiresBefore, now = -Infinity }: Filter): Wanted[] | undefined {
    const facts = this.#facts;
    const tests: Wanted[] = [(fact) => facts.expiresAt(fact) > now];
    if (expiresBefore !== undefined) tests.push((fact) => facts.expiresAt(fact) < expiresBefore);
    if (category !== undefined) {
      const number = facts.findCategory(category);
      if (number === undefined) return undefined;
      tests.push((fact) => facts.isIn(fact, number));
    }
    if (tag !== undefined || client !== undefined) tests.push(facts.having({ tag, client }));
    return tests;
  }
}
