import { readFileSync } from 'node:fs';
import type { SearchableFact } from '../../src/core/search/fact-index.ts';

/** A fact of a person's memory. */
export type MemoryFact = SearchableFact & {
  readonly client: string;
  /** Whether it is one of the facts that another client stored lately. */
  readonly planted: boolean;
};

export interface Prompt {
  readonly text: string;
  /** The fact that the prompt needs. */
  readonly needs?: MemoryFact;
}

/** The memory of one invented person, and what the person types. */
export interface PersonMemory {
  readonly facts: readonly MemoryFact[];
  readonly needing: readonly (Prompt & { readonly needs: MemoryFact })[];
  readonly needless: readonly Prompt[];
  /** Work on something that no fact is about. */
  readonly elsewhere: readonly Prompt[];
}

const DAY_MS = 86_400_000;
export type Half = 'seen' | 'held';

/** The time at which the prompts are typed. */
export const NOW = Date.UTC(2026, 10, 20);
/** A line such as `* people/manager @gemini-cli #project:quill: The manager is Shreya.` A planted fact begins with a star. */
const FACT = /^(?<star>\* )?(?<key>\S+) @(?<client>\S+?)(?: #(?<tag>\S+?))?: (?<value>.+)$/;
/** The categories that agents use besides the default one. The others are only the first part of a key. */
const CATEGORIES = ['preferences', 'conventions', 'decisions', 'project'];

/**
 * Reads the memory of the person whose prompts tune the constants (`seen`), or of the person who judges them (`held`). The planted facts
 * were stored in the last two days, or as long ago as the others.
 */
export function readMemory(half: Half, { lately = true } = {}): PersonMemory {
  const facts: MemoryFact[] = [];
  const needing: { readonly text: string; readonly needs: MemoryFact }[] = [];
  for (const line of linesOf(half)) {
    const last = facts.at(-1);
    if (line.startsWith('> ') && last) needing.push({ text: line.slice(2), needs: last });
    else facts.push(factOf(line, facts.length, lately));
  }
  return { facts, needing, needless: promptsOf(`${half}-nothing`), elsewhere: promptsOf(`${half}-elsewhere`) };
}

function linesOf(name: string): string[] {
  const text = readFileSync(new URL(`${name}.txt`, import.meta.url), 'utf8');
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('# '));
}

function factOf(line: string, place: number, lately: boolean): MemoryFact {
  const { star, key = '', client = '', tag, value = '' } = FACT.exec(line)?.groups ?? {};
  if (value === '') throw new Error(`This line is no fact: ${line}`);
  const first = key.split('/', 1)[0] ?? '';
  // Each second fact has the default category, as many agents store it.
  const category = CATEGORIES.includes(first) && place % 2 === 0 ? first : 'user_facts';
  // The others are from the half year before, in no order.
  const age = star && lately ? (2 * DAY_MS * place) / 200 : (3 + ((place * 67) % 180)) * DAY_MS;
  return {
    key,
    category,
    tags: tag === undefined ? [] : [tag],
    client,
    value,
    updatedAt: NOW - age,
    planted: star !== undefined,
  };
}

const promptsOf = (name: string): Prompt[] => linesOf(name).map((text) => ({ text }));
