import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import type { ActivityNote, Author, Entry, EntryDraft, WriteOutcome } from './store.ts';

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

/** The time at which a lifetime ends. No caller can make an entry permanent (R-TIME-02). */
export function expiryOf(lifetime: number, now: number): number {
  if (lifetime > 0 && lifetime <= TTL.max * 1000) return now + lifetime;
  throw new Failure('invalid_input', `A lifetime must be more than 0 and at most ${TTL.max} seconds. Ask for a shorter one.`);
}

/** The entry that is stored for a note. */
export function activityEntryOf(note: ActivityNote, outcome: WriteOutcome | undefined, now: number): Entry {
  const value = outcome && note.valueFor?.(outcome);
  return entryOf(value === undefined ? note : { ...note, value }, now);
}

/** What a write at `now` adds to its note; undefined if the note is complete. */
export function outcomeOf(before: Entry | undefined, after: Entry, now: number): WriteOutcome | undefined {
  const late = after.updatedAt > now;
  const shortened = before !== undefined && shortens(before, after);
  if (!late && !shortened) return undefined;
  return {
    ...(late && { written: after.updatedAt }),
    ...(shortened && { shortened: { from: before.expiresAt, to: after.expiresAt } }),
  };
}

/**
 * Whether a write makes another writer's fact expire sooner. The later end must stay in the history, or the owner could not undo
 * the write.
 */
export const shortens = (before: Entry, { author, expiresAt }: Pick<Entry, 'author' | 'expiresAt'>): boolean =>
  !isSameWriter(author, before.author) && expiresAt < before.expiresAt;

type Content = Pick<Entry, 'value' | 'category' | 'tags'>;

/** A new author or a new end of life alone makes no new version. */
export const sameContent = (one: Content, other: Content): boolean =>
  one.value === other.value &&
  one.category === other.category &&
  one.tags.length === other.tags.length &&
  one.tags.every((tag, index) => tag === other.tags[index]);

/** Whether a successful write changed nothing: there was no such entry, or there was nothing to undo. */
export const isUnchanged = (outcome: unknown): boolean =>
  outcome === undefined || outcome === 'untouched' || outcome === 'skipped';

/**
 * Whether entries of a category are earlier versions, such as those of a pipeline. Callers never see them, and no client or pack
 * can name a category with a colon.
 */
export const isVersionCategory = (category: string): boolean => category.endsWith(':version');

/** The client name of a token that names none. */
const NAMELESS = 'unknown';

/** Tells clients apart by name, and clients without a name by their tokens. No client name contains a colon. */
export const clientId = ({ client, token }: Pick<Author, 'client' | 'token'>): string =>
  client === NAMELESS ? `${NAMELESS}:${token}` : client;

/**
 * Tells writers apart wherever one writer must not destroy the words of another. A client that runs another client's definition
 * counts as a third writer: its words are the definer's.
 */
export const writerOf = ({ client, token, definedBy }: Author): string =>
  definedBy === undefined ? clientId({ client, token }) : `${clientId({ client, token })}:via:${definedBy}`;

export const isSameWriter = (one: Author, other: Author): boolean => writerOf(one) === writerOf(other);

/** Whether a client is responsible for an entry: it wrote the entry, or its definition wrote it when another client ran it. */
export const isWrittenFor = ({ client, definedBy }: Author, name: string): boolean => client === name || definedBy === name;

/** The clients responsible for an entry, under the names that every answer uses. */
export const signatures = ({
  client,
  definedBy,
}: {
  readonly client: string;
  readonly definedBy?: string | undefined;
}): { client: string; defined_by?: string } => ({ client, ...(definedBy !== undefined && { defined_by: definedBy }) });
