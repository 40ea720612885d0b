import { CATEGORY, CATEGORY_RULE } from '../../contract/categories.ts';
import { Failure } from '../../contract/failure.ts';
import { CONTEXT, KEY_BYTES, PAGE, TTL, VALUE_BYTES } from '../../contract/limits.ts';
import { fitsBytes } from '../../contract/schema.ts';
import { isKeyAvailable } from '../../contract/status.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { findSecret } from '../operations/secret-guard.ts';
import { clientId } from '../store/entry.ts';
import type { Entry, MemoryStore, Namespace, Space } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { allEntries } from './all-entries.ts';
import { putFairly } from './fair-quota.ts';
import type { HookRun, PackHook } from './hook.ts';
import type { Pack, PackMemory, PackMemoryEntry } from './pack.ts';
import type { PackSessions } from './sessions.ts';

interface Deps {
  readonly store: MemoryStore;
  readonly pack: Pack;
  readonly caller: Caller;
  readonly namespace: Namespace;
  /** Aborted when the run is cancelled. The handler can continue to run after that, but must not write any more. */
  readonly signal: AbortSignal;
}

/** Gives each pack that declares `memory` its own storage for the caller and session. */
export function memoryHook(store: MemoryStore, sessions: PackSessions): PackHook {
  const addMemory = ({ pack, caller, session, context }: HookRun): undefined => {
    if (!pack.memory || !isKeyAvailable(store.status().key)) return;
    const namespace = { subject: caller.subject, ...(session !== undefined && { session }) };
    context.memory = createPackMemory({ store, pack, caller, namespace, signal: context.signal });
  };
  return {
    // Open the session for packs without memory too, because every run keeps its session open.
    before: (run) =>
      run.session === undefined ? addMemory(run) : sessions.open(run.caller, run.session).then(() => addMemory(run)),

    // Mark the session as used after the run, so that the time of the run does not count as idle time.
    after({ caller, session }) {
      if (session !== undefined) sessions.touch(caller, session);
    },
  };
}

/**
 * Creates the storage of a pack. Keys are stored with the pack's name as a prefix that the handler never sees, so that a pack
 * cannot read or write the entries of another pack. A quarantined client has a storage of its own, because other clients would read
 * what its runs store (R-INBOX-01). The colon of its prefix is in no name of a pack.
 */
function createPackMemory({ store: memoryStore, pack, caller, namespace, signal }: Deps): PackMemory {
  const space: Space = memoryStore.space(namespace, 'pack');
  const prefix = caller.quarantined ? `quarantined:${clientId(caller)}/${pack.name}/` : `${pack.name}/`;
  const { subject, session } = namespace;

  const detail = (entry: Entry): PackMemoryEntry => ({ ...summary(entry), value: JSON.parse(entry.value) as unknown });
  const summary = ({ key, category, tags, updatedAt, expiresAt }: Entry): Omit<PackMemoryEntry, 'value'> => ({
    key: key.slice(prefix.length),
    category,
    tags,
    updated_at: formatTime(updatedAt),
    expires_at: formatTime(expiresAt),
  });

  const newest = (begin: string): AsyncGenerator<Entry> =>
    allEntries(space, { sort: 'updated', limit: PAGE.max, matches: ({ key }) => key.startsWith(prefix + begin) });

  return {
    namespace: session === undefined ? subject : `${subject}:${session}`,

    async store(key, value, { ttl = pack.memory?.ttl ?? TTL.default, category = pack.memory?.category, tags = [] } = {}) {
      const text = JSON.stringify(value) as string | undefined;
      if (text === undefined || !fitsBytes(text, VALUE_BYTES)) {
        throw new Failure(
          'handler_failed',
          `A pack can store JSON values of at most ${VALUE_BYTES / 1024} KiB; store a smaller value.`,
        );
      }
      // The check includes the key, because a field name can reveal that its value is a secret.
      if (findSecret(JSON.stringify([{ [key]: value }, tags, category]))) {
        throw new Failure(
          'handler_failed',
          'The pack tried to store something that looks like a credential; remove the credential.',
        );
      }
      if (!(ttl > 0 && ttl <= TTL.max)) {
        throw new Failure('handler_failed', `ttl must be a number of seconds, more than 0 and at most ${TTL.max}.`);
      }
      const author = authorOf(caller);
      const draft = {
        key: prefix + validKey(key),
        value: text,
        category: validCategory(category ?? CATEGORY.pack),
        tags,
        author,
        lifetime: ttl * 1000,
      };
      await putFairly(memoryStore, subject, author, () => {
        signal.throwIfAborted();
        return space.put(draft);
      });
    },

    async recall(key) {
      const entry = await space.get(prefix + validKey(key));
      return entry && detail(entry);
    },

    async list(begin = '') {
      const found: Omit<PackMemoryEntry, 'value'>[] = [];
      for await (const entry of newest(begin)) found.push(summary(entry));
      return found;
    },

    async delete(key) {
      const { deleted } = await memoryStore.forget(subject, {
        kinds: ['pack'],
        key: prefix + validKey(key),
        session: session ?? '',
      });
      return deleted > 0;
    },

    async context() {
      const entries: PackMemoryEntry[] = [];
      let left: number = CONTEXT.bytes;
      for await (const entry of newest('')) {
        left -= Buffer.byteLength(entry.value);
        if (left < 0 || entries.length === CONTEXT.facts) break;
        entries.push(detail(entry));
      }
      const grouped = Map.groupBy(entries, ({ category }) => category);
      return { categories: [...grouped].map(([name, members]) => ({ name, entries: members })) };
    },
  };
}

function validKey(key: string): string {
  if (typeof key === 'string' && key !== '' && key.isWellFormed() && fitsBytes(key, KEY_BYTES)) return key;
  throw new Failure('handler_failed', `A key must be a text of 1 to ${KEY_BYTES} bytes; choose another key.`);
}

function validCategory(category: string): string {
  if (CATEGORY.pattern.test(category)) return category;
  throw new Failure('handler_failed', `A category ${CATEGORY_RULE}.`);
}
