import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import type { Author, EntryDraft, Entry } from './store.ts';

/** The first version of an entry. */
export const entryOf = ({ key, value, category, tags, author, lifetime }: EntryDraft, now: number): Entry => ({
  key,
  value,
  category,
  tags,
  author,
  createdAt: now,
  updatedAt: now,
  expiresAt: expiryOf(lifetime, now),
});

/** Whoever asks, nothing lives for ever (R-TIME-02). */
export function expiryOf(lifetime: number, now: number): number {
  if (lifetime > 0 && lifetime <= TTL.max * 1000) return now + lifetime;
  throw new Failure(
    'invalid_input',
    `A lifetime must be more than nothing and at most ${TTL.max} seconds; ask for a shorter one.`,
  );
}

/** Whether a client is responsible for an entry: it wrote the entry, or a definition of its own did when another ran it. */
export const isWrittenFor = ({ client, definedBy }: Author, name: string): boolean => client === name || definedBy === name;

type Content = Pick<Entry, 'value' | 'category' | 'tags'>;

/** Says the same: another hand or another end of life makes no new version. */
export const sameContent = (one: Content, other: Content): boolean =>
  one.value === other.value &&
  one.category === other.category &&
  one.tags.length === other.tags.length &&
  one.tags.every((tag, index) => tag === other.tags[index]);

/** Whether a write that ended well left everything as it was: there was no such entry, or nothing to take back. */
export const isUnchanged = (outcome: unknown): boolean =>
  outcome === undefined || outcome === 'untouched' || outcome === 'skipped';

/**
 * Earlier versions that the program keeps as entries of their own, such as those of a pipeline. No caller sees them, and no client
 * or pack can name a category with a colon.
 */
export const isVersionCategory = (category: string): boolean => category.endsWith(':version');
