import type { SearchableFact } from '../src/core/search/fact-index.ts';
import { made, numbers } from './vocabulary.ts';

/** A class of searches as agents send them. `question` has eight words. */
export type QueryClass = 'identifier' | 'ticket' | 'version' | 'question';
export const QUERY_CLASSES: readonly QueryClass[] = ['identifier', 'ticket', 'version', 'question'];

const PROJECTS = ['PROJ', 'OPS', 'WEB', 'DATA', 'INFRA', 'PAY'];
const TOPICS = ['decisions', 'services', 'people', 'incidents', 'preferences', 'releases'];
const CLIENTS = ['claude-code', 'codex', 'cursor', 'openclaw'];
const STARTS = ['We decided that the', 'The owner prefers the', 'The team of the', 'Remember that the', 'Do not change the'];

const numbered = (index: number): string => `grp${String(index).padStart(6, '0')}`;
const pick = (items: readonly string[], number: number): string => items[number % items.length] ?? '';

/**
 * Facts of about 200 bytes in the style of agents' notes: sentences with stop words, and in each fact an identifier of its own, a
 * ticket that a few facts share, and a version that many facts share.
 */
export function realFacts(count: number): (SearchableFact & { readonly id: number })[] {
  const word = made(20_000);
  const random = numbers(7);
  const below = (most: number): number => Math.floor(random() * most);
  return Array.from({ length: count }, (_, index) => {
    const ticket = `${pick(PROJECTS, below(PROJECTS.length))}-${1000 + below(9000)}`;
    const version = `v${below(10)}.${below(20)}.${below(10)}`;
    const start = pick(STARTS, below(STARTS.length));
    const value =
      `${start} ${word()} ${word()} of the ${word()} is ${word()} for ${numbered(index)} since ${version}. ` +
      `See ${ticket}: it is the ${word()} in ${word()} that ${word()} and ${word()} use, not ${word()} ${word()}. ` +
      `What the ${word()} does with ${word()} is in ${word()}.`;
    return {
      id: index,
      key: `${pick(TOPICS, below(TOPICS.length))}/${word()}-${word()}`,
      category: index % 5 === 0 ? 'project' : 'user_facts',
      tags: [word()],
      client: pick(CLIENTS, below(CLIENTS.length)),
      value,
      updatedAt: index,
    };
  });
}

/** Returns searches of one class. Each search is about a fact of its own, which it should find. */
export function realQueries(kind: QueryClass, facts: readonly SearchableFact[], count: number): string[] {
  return Array.from({ length: count }, (_, round) => {
    const { value, key } = facts[(round * 7919) % facts.length] ?? { value: '', key: '' };
    if (kind === 'identifier') return /grp\d+/.exec(value)?.[0] ?? '';
    if (kind === 'ticket') return /[A-Z]+-\d+/.exec(value)?.[0] ?? '';
    if (kind === 'version') return /v\d+\.\d+\.\d+/.exec(value)?.[0] ?? '';
    const [about = '', , of = ''] = key
      .split(/[/-]/)
      .slice(1)
      .concat(/that (\w+) and/.exec(value)?.[1] ?? '');
    return `what did we decide about the ${about} ${of}`;
  });
}
