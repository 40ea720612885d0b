import { CATEGORY } from '../../contract/categories.ts';
import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import type { ActivityNote, Author, Entry, EntryDraft, RevertResult, WriteOutcome } from './store.ts';

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

/**
 * Returns the expiry time of an entry written at `now`. Rejects lifetimes above `TTL.max`, so no caller can make an entry
 * permanent (R-TIME-02).
 */
export function expiryOf(lifetime: number, now: number): number {
  if (lifetime > 0 && lifetime <= TTL.max * 1000) return now + lifetime;
  throw new Failure(
    'invalid_input',
    `A lifetime must be more than 0 and at most ${TTL.max} seconds. Request a lifetime in this range.`,
  );
}

export function activityEntryOf(note: ActivityNote, outcome: WriteOutcome | undefined, now: number): Entry {
  const value = outcome && note.valueFor?.(outcome);
  return entryOf(value === undefined ? note : { ...note, value }, now);
}

/**
 * Returns the details that the store adds to the activity note of a write, or undefined if there are none. `replaced` are the facts
 * that the write replaced.
 */
export function outcomeOf(replaced: readonly Entry[], after: Entry, now: number): WriteOutcome | undefined {
  const late = after.updatedAt > now;
  const ends = replaced.filter((before) => shortens(before, after)).map(({ expiresAt }) => expiresAt);
  if (!late && ends.length === 0) return undefined;
  return {
    ...(late && { written: after.updatedAt }),
    ...(ends.length > 0 && { shortened: { from: Math.max(...ends), to: after.expiresAt } }),
  };
}

/**
 * Whether a write makes another writer's fact expire sooner. The history must then keep the version with the later expiry, because
 * otherwise the owner could not undo the write.
 */
export const shortens = (before: Entry, { author, expiresAt }: Pick<Entry, 'author' | 'expiresAt'>): boolean =>
  !isSameWriter(author, before.author) && expiresAt < before.expiresAt;

type Content = Pick<Entry, 'value' | 'category' | 'tags'>;

/** Compares the fields whose change makes a new version of an entry. A different author or expiry alone makes no new version. */
export const sameContent = (one: Content, other: Content): boolean =>
  one.value === other.value &&
  one.category === other.category &&
  one.tags.length === other.tags.length &&
  one.tags.every((tag, index) => tag === other.tags[index]);

/** Whether a successful write changed nothing, because the entry did not exist or there was nothing to undo. */
export function isUnchanged(outcome: unknown): boolean {
  if (typeof outcome !== 'object' || outcome === null) return outcome === undefined;
  const { what, returned } = outcome as Partial<RevertResult>;
  return (what === 'untouched' || what === 'skipped') && returned?.length === 0;
}

/**
 * Whether a category contains earlier versions of entries, such as `pipeline:version`. Callers never see these entries, and no
 * client or pack can use a category name with a colon.
 */
const isVersionCategory = (category: string): boolean => category.endsWith(':version');

/** Category of the writes that wait in the Inbox. No client or pack can use it, because it has a colon. */
export const INBOX_CATEGORY = 'inbox:item';

/** Whether entries of a category are left out of the counts that a forget returns, because only the owner may know of them. */
export const isUncountedCategory = (category: string): boolean => isVersionCategory(category) || category === INBOX_CATEGORY;

/** The default category is stored as an empty text, which no category is, so that most rows and index entries are shorter. */
export const storedCategory = (category: string): string => (category === CATEGORY.default ? '' : category);

/** Client name of a token that was created without a name. */
const UNNAMED = 'unknown';

/**
 * Returns an id that is unique for each client: the client's name, or the token id for a client without a name. Client names never
 * contain a colon, so the two forms cannot collide.
 */
export const clientId = ({ client, token }: Pick<Author, 'client' | 'token'>): string =>
  client === UNNAMED ? `${UNNAMED}:${token}` : client;

/**
 * Returns an id that is unique for each writer, used where a writer must not destroy another writer's text. When a client runs a
 * definition (such as a pipeline) of another client, the pair of clients counts as a separate writer.
 */
export const writerOf = ({ client, token, definedBy }: Author): string =>
  definedBy === undefined ? clientId({ client, token }) : `${clientId({ client, token })}:via:${definedBy}`;

export const isSameWriter = (one: Author, other: Author): boolean => writerOf(one) === writerOf(other);

/**
 * Whether a client is responsible for an entry: the client wrote the entry itself, or another client wrote the entry by running the
 * client's pipeline.
 */
export const isWrittenFor = ({ client, definedBy }: Author, name: string): boolean => client === name || definedBy === name;
