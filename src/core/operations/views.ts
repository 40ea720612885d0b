import { Failure } from '../../contract/failure.ts';
import { CONTEXT, EXPIRING_SOON, OVERVIEW } from '../../contract/limits.ts';
import type { Context } from '../../contract/views.ts';
import { type Caller, namespaceOf, hasScope, signatures } from '../access/caller.ts';
import { markedField } from '../inbox/marks.ts';
import { collectPage } from '../store/collect-page.ts';
import type { Entry, Namespace, Overview } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { activityRowOf } from './activity.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type ViewOperations = Pick<Memory, 'myMemory' | 'myDefaults' | 'context' | 'callers' | 'activity' | 'status'>;

export const views = ({
  store,
  scheduler,
  inbox,
  embeddings,
  meaning,
  program,
  packs: { defaults },
}: MemoryDeps): ViewOperations => ({
  async myMemory(caller) {
    const { categories, more } = await store.space(namespaceOf(caller), 'fact').overview(OVERVIEW);
    const summary = {
      ...heading(caller, store.now()),
      categories: categories.map(({ name, count, recent }) => ({ name, count, recent_keys: recent.slice(0, 1) })),
      ...(more > 0 && { more_categories: more }),
      ...(categories.length === 0 && { note: EMPTY }),
    };
    addRecentKeys(summary.categories, categories, OVERVIEW.bytes - bytesOf(summary));
    return summary;
  },

  async myDefaults(caller) {
    return { ...heading(caller, store.now()), ...(await defaults.of(caller)) };
  },

  async context(caller) {
    const space = store.space(namespaceOf(caller), 'fact');
    const newest = { sort: 'updated', limit: CONTEXT.facts } as const;
    const { entries, next } = await collectPage(space, newest, { between: () => scheduler.yieldTurn(caller.subject) });
    const shown = withinBytes(entries);
    const partial = shown.length < entries.length || next !== undefined;
    return {
      ...heading(caller, store.now()),
      categories: byCategory(shown),
      ...(partial && { partial: true as const }),
      ...(entries.length === 0 && { note: EMPTY }),
    };
  },

  async callers(caller) {
    const all = await store.namespaces();
    if (hasScope(caller, 'admin')) {
      return { callers: all.map(({ namespace, count }) => ({ namespace: nameOf(namespace), count })) };
    }
    const own = nameOf(namespaceOf(caller));
    return { callers: [{ namespace: own, count: all.find(({ namespace }) => nameOf(namespace) === own)?.count ?? 0 }] };
  },

  async activity(caller, { limit, cursor, all }) {
    if (all && !hasScope(caller, 'admin'))
      throw new Failure('insufficient_scope', 'Only a token with the scope admin can list the activity of all memories.');
    const namespaces = all ? (await store.namespaces('activity')).map(({ namespace }) => namespace) : [namespaceOf(caller)];
    const after = cursor === undefined ? undefined : decodeCursor(cursor, 'updated');
    const rows = await Promise.all(
      namespaces.map(async (namespace) => {
        const query = { sort: 'updated', limit: limit + 1, ...(after && { after }) } as const;
        const between = (): Promise<void> => scheduler.yieldTurn(caller.subject);
        const { entries, rows: named } = await collectPage(store.space(namespace, 'activity'), query, { between });
        return entries.map((entry, index) => ({
          entry,
          namespace,
          place: { at: entry.updatedAt, row: named[index] ?? 0 },
        }));
      }),
    );
    const newest = rows.flat().toSorted((one, other) => other.place.at - one.place.at || other.place.row - one.place.row);
    const last = newest.length > limit ? newest[limit - 1] : undefined;
    return {
      activity: newest.slice(0, limit).map(({ entry, namespace, place }) => ({
        id: encodeCursor(place, 'updated'),
        ...activityRowOf(entry),
        ...(all && { namespace: nameOf(namespace) }),
      })),
      ...(last && { next_cursor: encodeCursor(last.place, 'updated') }),
    };
  },

  async status(caller) {
    const space = store.space(namespaceOf(caller), 'fact');
    const [facts, soon, waiting] = await Promise.all([
      space.count(),
      space.countExpiringBefore(store.now() + EXPIRING_SOON * 1000 + 1),
      hasScope(caller, 'admin') ? inbox.count(caller.subject) : undefined,
    ]);
    return {
      versions: { program: program.version, node: process.versions.node },
      listener: program.listening(),
      store: store.status(),
      embeddings: embeddings.state,
      meaning: meaning.state,
      facts,
      expiring_soon: soon,
      ...(waiting !== undefined && { inbox: waiting }),
    };
  },
});

const EMPTY = 'No facts are stored. Earlier facts may have expired or been forgotten.';

const heading = (caller: Caller, now: number): { scope: string; fetched_at: string } => ({
  scope: `caller=${nameOf(namespaceOf(caller))}`,
  fetched_at: formatTime(now),
});

/**
 * Returns the display name of a namespace. Subjects contain no colon, so the name of a subject cannot look like a session of
 * another subject.
 */
const nameOf = ({ subject, session }: Namespace): string => (session === undefined ? subject : `${subject}:${session}`);

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/**
 * Adds keys until `limit` bytes are used: first the second newest key of each category, then the third newest key of each, and so
 * on.
 */
function addRecentKeys(listed: readonly { recent_keys: string[] }[], all: Overview['categories'], limit: number): void {
  let left = limit;
  for (let turn = 1; turn < OVERVIEW.keys; turn += 1) {
    for (const [index, { recent }] of all.entries()) {
      const key = recent[turn];
      if (key === undefined) continue;
      left -= bytesOf(key) + COMMA;
      if (left < 0) return;
      listed[index]?.recent_keys.push(key);
    }
  }
}

const COMMA = 1;

/**
 * Selects entries whose values fit into the byte limit. Skips a value that exceeds the remaining bytes, because shorter values
 * after it may still fit.
 */
function withinBytes(entries: readonly Entry[]): Entry[] {
  let left: number = CONTEXT.bytes;
  return entries.filter(({ value }) => {
    const bytes = Buffer.byteLength(value);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  });
}

/** Groups entries by category. Categories are ordered by their newest fact. */
const byCategory = (entries: readonly Entry[]): Context['categories'] =>
  [...Map.groupBy(entries, ({ category }) => category)].map(([name, members]) => ({
    name,
    facts: members.map(({ key, value, tags, author, updatedAt, expiresAt }) => ({
      key,
      value,
      ...markedField({ key, value, tags }),
      ...signatures(author),
      updated_at: formatTime(updatedAt),
      expires_at: formatTime(expiresAt),
    })),
  }));
