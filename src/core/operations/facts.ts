import type { FactDetail, FactSummary } from '../../contract/fact.ts';
import { Failure } from '../../contract/failure.ts';
import { spellScope } from '../../contract/forget.ts';
import { type Caller, authorOf, shorteningGraceFor, namespaceOf, signatures } from '../access/caller.ts';
import { markedField } from '../inbox/marks.ts';
import type { RunOrigin } from '../pipelines/pipeline-runner.ts';
import { collectPage } from '../store/collect-page.ts';
import { isWrittenFor } from '../store/entry.ts';
import { selectionOf } from '../store/scope.ts';
import { type Entry, STEP_BYTES } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { noteOf } from './activity.ts';
import { encodeCursor, decodeCursor } from './cursor.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { refuseSecrets } from './secret-guard.ts';
import { similarTo } from './similar.ts';

type Facts = Pick<Memory, 'remember' | 'recall' | 'list' | 'patch' | 'forget' | 'undoForget' | 'history'>;

export const facts = ({ store, scheduler, secrets, forgotten, finder, receipts, packs: { pipelines } }: MemoryDeps): Facts => ({
  async remember(caller, { key, value, category, tags, ttl_seconds: ttl, supersedes, similar }) {
    const warning = refuseSecrets(secrets, { value, key, tags, category });
    const other = supersedes === undefined ? undefined : { supersedes };
    const fact = { key, value, category, tags, author: authorOf(caller), lifetime: ttl * 1000 };
    const draft = { ...fact, ...shorteningGraceFor(caller), ...other };
    const latest = store.now() + draft.lifetime;
    const note = noteOf(caller, 'remember', { key, ...other });
    const { status, entry } = await store.space(namespaceOf(caller), 'fact').put(draft, note);
    const extended = entry.expiresAt > latest + SLACK_MS ? EXPIRES_LATER : undefined;
    const notes = [warning, extended, store.status().kept === 'memory' ? RAM_ONLY_NOTE : undefined].filter(
      (each) => each !== undefined,
    );
    const others = similar && finder.comparesMeanings ? await similarTo({ finder, scheduler }, caller, entry) : undefined;
    return {
      key: entry.key,
      category: entry.category,
      tags: [...entry.tags],
      status,
      expires_at: formatTime(entry.expiresAt),
      ...(supersedes !== undefined && { superseded: supersedes }),
      ...others,
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  },

  async recall(caller, { key }) {
    const entry = await store.space(namespaceOf(caller), 'fact').get(key);
    if (!entry) throw unknownKey();
    const shown = await receipts.shown(caller.subject, entry);
    return {
      ...factDetail(entry),
      ...(shown && { shown: { count: shown.count, last_client: shown.client, last_at: formatTime(shown.at) } }),
    };
  },

  async list(caller, filter) {
    const { sort, limit, category, values, cursor } = filter;
    const { prefix, tag, client, expiring_within: within } = filter;
    const space = store.space(namespaceOf(caller), 'fact');
    const matches = ({ key, tags, author }: Entry): boolean =>
      (prefix === undefined || key.startsWith(prefix)) &&
      (tag === undefined || tags.includes(tag)) &&
      (client === undefined || isWrittenFor(author, client));
    const narrowed = prefix !== undefined || tag !== undefined || client !== undefined;
    const expiresBefore = within === undefined ? undefined : store.now() + within * 1000 + 1;
    const query = {
      sort,
      limit,
      ...(category !== undefined && { category }),
      ...(expiresBefore !== undefined && { expiresBefore }),
      ...(narrowed && { matches }),
      ...(cursor !== undefined && { after: decodeCursor(cursor, sort) }),
    };
    // Keys, tags and clients are encrypted, so the store has to decrypt every candidate. A page with values ends after
    // `STEP_BYTES`.
    const steps = { between: () => scheduler.yieldTurn(caller.subject), ...(values && { enough: STEP_BYTES }) };
    const { entries, next } = await collectPage(space, query, steps);
    return {
      facts: entries.map((entry) => (values ? factDetail(entry) : summary(entry))),
      ...(next && { next_cursor: encodeCursor(next, sort) }),
    };
  },

  async patch(caller, { key, category, tags, ttl_seconds: ttl }) {
    refuseSecrets(secrets, { ...(tags && { tags }), ...(category !== undefined && { category }) });
    const change = {
      author: authorOf(caller),
      ...(category !== undefined && { category }),
      ...(tags && { tags }),
      ...(ttl !== undefined && { lifetime: ttl * 1000 }),
      ...shorteningGraceFor(caller),
    };
    const entry = await store.space(namespaceOf(caller), 'fact').change(key, change, noteOf(caller, 'patch', { key }));
    if (!entry) throw unknownKey();
    return summary(entry);
  },

  async forget(caller, { scope, dry_run: dry }, context) {
    const { subject, session } = caller;
    const selection = { ...selectionOf(scope), ...(session !== undefined && { session }) };
    const spelled = spellScope(scope);
    const between = (): Promise<void> => scheduler.yieldTurn(subject);
    if (dry) {
      const deleted = await store.countMatching(subject, selection, between);
      return { scope: spelled, deleted, purged: false, older_backups: store.upkeep?.backups().length ?? 0, dry_run: true };
    }
    if (session === undefined && (scope.kind === 'all' || scope.kind === 'client')) {
      const runs = scope.kind === 'client' ? isRunOf(scope.name) : () => true;
      await pipelines.cancelRuns(
        subject,
        runs,
        'The run was cancelled, because the memory that it belongs to was forgotten.',
        context,
      );
    }
    const details = scope.kind === 'key' ? { key: scope.name } : { scope: spelled };
    const note = noteOf(caller, 'forget', details);
    const namespace = namespaceOf(caller);
    const isUndoable = scope.kind === 'key' && isWindow(caller);
    const fact = isUndoable ? await store.space(namespace, 'fact').withHistory(scope.name) : undefined;
    // Add the fact to the undo buffer before forgetting it. A lock or a wider forget in the meantime then removes it from the
    // buffer.
    const undo = fact && forgotten.add({ namespace, fact });
    // The undo of an earlier forget must not restore facts that this call forgets.
    const excluded = fact ? undefined : forgotten.exclude(subject, ({ key }) => scope.kind !== 'key' || key === scope.name);
    let deleted = 0;
    try {
      const result = await store.forget(subject, selection, note, between);
      deleted = result.deleted;
      const { purged, reason, olderBackups } = result;
      const isHeld = undo !== undefined && deleted > 0 && forgotten.find(subject, undo) !== undefined;
      return { scope: spelled, deleted, purged, ...(reason && { reason }), older_backups: olderBackups, ...(isHeld && { undo }) };
    } finally {
      excluded?.[Symbol.dispose]();
      if (undo !== undefined && deleted === 0) forgotten.drop(undo);
    }
  },

  async undoForget(caller, { undo }) {
    if (!isWindow(caller))
      throw new Failure(
        'insufficient_scope',
        'Only the window can undo a forget, and only a forget that was made in the window.',
      );
    const held = forgotten.find(caller.subject, undo);
    if (!held) throw new Failure('not_found', 'It is too late to undo this forget; the fact is deleted permanently.');
    const { namespace, fact } = held;
    const note = noteOf(caller, 'undoForget', { key: fact.entry.key });
    const restored = await store.space(namespace, 'fact').restoreForgotten(fact, note);
    if (!restored)
      throw new Failure('not_found', 'The fact has expired, or another fact was stored under its key; nothing was changed.');
    forgotten.drop(undo);
    return summary(fact.entry);
  },

  async history(caller, { key }) {
    const space = store.space(namespaceOf(caller), 'fact');
    const versions = await space.history(key);
    if (versions.length === 0 && !(await space.get(key))) throw unknownKey();
    return {
      key,
      versions: versions.map(({ value, category, tags, author, updatedAt, expiresAt, formerKeys }) => ({
        value,
        ...markedField({ key, value, tags }),
        category,
        tags: [...tags],
        ...signatures(author),
        written_at: formatTime(updatedAt),
        expires_at: formatTime(expiresAt),
        ...formerKeyOf(formerKeys),
      })),
    };
  },
});

/** Returns the first key that a version of a superseded fact had. */
const formerKeyOf = (formerKeys: Entry['formerKeys']): { former_key?: string } => {
  const first = formerKeys?.at(-1);
  return first ? { former_key: first.key } : {};
};

/** Selects the runs that a client started, or whose pipeline the client defined. */
export const isRunOf =
  (name: string) =>
  ({ client, definedBy }: RunOrigin): boolean =>
    client === name || definedBy === name;

/** Whether the caller is the window. An agent cannot have this transport, whatever its token. */
const isWindow = ({ transport }: Caller): boolean => transport === 'window';

export const RAM_ONLY_NOTE =
  'This memory has no key, so it is stored in RAM only and lost when the program exits; tell the owner.';

/** Milliseconds that a write can have waited in a queue after the time of the call was read. */
const SLACK_MS = 60_000;
const EXPIRES_LATER =
  'Another client relies on this fact, so it expires later than requested, at `expires_at`; only the owner can make it expire sooner.';

const summary = ({ key, category, tags, author, createdAt, updatedAt, expiresAt }: Entry): FactSummary => ({
  key,
  category,
  tags: [...tags],
  ...signatures(author),
  created_at: formatTime(createdAt),
  updated_at: formatTime(updatedAt),
  expires_at: formatTime(expiresAt),
});

export const factDetail = (entry: Entry): FactDetail => ({ ...summary(entry), value: entry.value, ...markedField(entry) });

/** Returns the failure for an unknown key. The failure is the same for a key that never existed, has expired or was forgotten. */
const unknownKey = (): Failure =>
  new Failure('not_found', 'No fact is stored under this key; look up the key in the list of facts, or store a new fact.');
