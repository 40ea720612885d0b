import { Failure } from '../../contract/failure.ts';
import { HISTORY_VERSIONS, PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition, PipelineReceipt } from '../../contract/pipeline.ts';
import { type DefinitionAuthor, mayChange } from '../access/authorship.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { mayTakePlace } from '../access/fair-share.ts';
import { allEntries } from '../packs/all-entries.ts';
import { putFairly } from '../packs/fair-quota.ts';
import { clientId } from '../store/entry.ts';
import {
  type ActivityNote,
  type Author,
  type Entry,
  EntryChanged,
  type MemoryStore,
  type Space,
  type UndoRange,
} from '../store/store.ts';
import { isInUndoRange, planRevert, restoredVersion } from '../store/undo.ts';
import { formatTime } from '../time/format-time.ts';

/**
 * Category and key prefix of definitions. Packs cannot write such entries: a pack's categories have no colon, and its keys start
 * with a name that contains a dot.
 */
const DEFINITION = { category: 'pipeline:definition', begin: 'pipelines/' } as const;
const VERSION = { category: 'pipeline:version', begin: 'pipeline-versions/' } as const;

/** Number of definitions that are decrypted in one turn of the event loop. It is small, so that other callers are not delayed. */
const SLICE = 20;

/** The stored JSON of a definition. In entries written before authors were recorded, the value is the definition itself. */
interface StoredDefinition {
  readonly definition: PipelineDefinition;
  /** True if the owner wrote or adopted the definition. */
  readonly owner?: true;
  /** The client that wrote the definition, if another client or the owner has adopted it. */
  readonly wrote?: string;
  readonly legacy?: true;
}

/** A stored version of a definition, either the latest version or an earlier one. */
interface StoredVersion extends StoredDefinition {
  /** The version number, which starts at 1. */
  readonly version: number;
  /**
   * The time when an earlier version was written, in milliseconds since 1970. The times of its entry say when the version was
   * moved to its slot.
   */
  readonly at?: number;
}

export interface AttributedDefinition {
  readonly definition: PipelineDefinition;
  readonly author: DefinitionAuthor;
  /** The client that wrote the definition, if another client or the owner has adopted it. */
  readonly originalClient: string | undefined;
  /** True if the definition was written before authors were recorded. It cannot run until the owner adopts it. */
  readonly legacy: boolean;
  readonly updatedAt: number;
  readonly expiresAt: number;
}

interface StoredEntry {
  readonly entry: Entry;
  readonly stored: StoredVersion;
}

interface UndoResult {
  readonly removed: string[];
  readonly restored: string[];
  readonly skipped: string[];
}

type NoteOf = (operation: PipelineChange, id: string) => ActivityNote;

/** Names of pipeline changes in the activity record. */
export type PipelineChange = 'createPipeline' | 'replacePipeline' | 'deletePipeline' | 'undo';

/**
 * Stores pipeline definitions in their subject's memory. Only the author and the owner are allowed to change a definition
 * (R-DEFINE-01). Earlier versions are stored, as for facts.
 */
export class DefinitionStore {
  readonly #store: MemoryStore;
  /** The latest change of each subject. Changes of a subject run one at a time, because each change reads before it writes. */
  readonly #changing = new Map<string, Promise<unknown>>();

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  async get(subject: string, id: string): Promise<AttributedDefinition> {
    return attributed(await this.#find(subject, id));
  }

  /** Returns all definitions of a subject, sorted by id. */
  async all(subject: string): Promise<AttributedDefinition[]> {
    const all: AttributedDefinition[] = [];
    for await (const found of this.#each(subject)) all.push(attributed(found));
    return all.toSorted((one, other) => (one.definition.id < other.definition.id ? -1 : 1));
  }

  put(
    caller: Caller,
    definition: PipelineDefinition,
    noteOf: NoteOf,
  ): Promise<{ status: PipelineReceipt['status']; expiresAt: number }> {
    return this.#serialize(caller.subject, async () => {
      const { id } = definition;
      const space = this.#space(caller.subject);
      const entry = await space.get(DEFINITION.begin + id);
      const stored: StoredDefinition = { definition, ...(caller.owner === true && { owner: true }) };
      if (!entry) {
        // A new definition does not evict another one, because clients may rely on that definition. Instead, each client can
        // store only a share of the definitions.
        const authors: Author[] = [];
        for await (const found of this.#each(caller.subject)) authors.push(found.entry.author);
        if (!mayTakePlace(caller, authors, PIPELINE.definitions)) {
          throw new Failure(
            'quota_exceeded',
            `This client has reached its share of the ${PIPELINE.definitions} pipelines that a memory can store; delete one of its pipelines first.`,
          );
        }
        const { expiresAt } = await this.#write(caller.subject, authorOf(caller), { ...stored, version: 1 }, undefined, {
          note: noteOf('createPipeline', id),
        });
        return { status: 'created', expiresAt };
      }
      const found = { entry, stored: read(entry) };
      requireMayChange(caller, found);
      if (isSame(found, caller, stored)) {
        const renewed = await space.change(entry.key, { author: authorOf(caller), lifetime: PIPELINE.ttl * 1000 });
        return { status: 'unchanged', expiresAt: renewed?.expiresAt ?? entry.expiresAt };
      }
      const { expiresAt } = await this.#supersede(caller.subject, found, authorOf(caller), stored, noteOf('replacePipeline', id));
      return { status: 'updated', expiresAt };
    });
  }

  /** Makes the caller responsible for a definition. Throws if the version that the caller has seen is not the current one. */
  adopt(caller: Caller, id: string, seen: string): Promise<AttributedDefinition> {
    return this.#serialize(caller.subject, async () => {
      const found = await this.#find(caller.subject, id);
      const { entry, stored } = found;
      if (Date.parse(seen) !== entry.updatedAt) {
        throw new Failure(
          'invalid_input',
          `This pipeline was changed at ${formatTime(entry.updatedAt)}, after the version that you reviewed. Review the new version before you adopt it.`,
        );
      }
      const adopted: StoredDefinition = {
        definition: stored.definition,
        ...(caller.owner === true && { owner: true }),
        wrote: stored.wrote ?? entry.author.client,
      };
      if (isSame(found, caller, adopted)) return attributed(found);
      await this.#supersede(caller.subject, found, authorOf(caller), adopted);
      return attributed(await this.#find(caller.subject, id));
    });
  }

  delete(caller: Caller, id: string, noteOf: NoteOf): Promise<void> {
    return this.#serialize(caller.subject, async () => {
      const found = await this.#find(caller.subject, id);
      requireMayChange(caller, found);
      await this.#remove(caller.subject, found, noteOf('deletePipeline', id));
    });
  }

  /** Renews the lifetime of a definition for a year. Called when the definition runs. */
  async renew(subject: string, author: Author, id: string): Promise<void> {
    await this.#space(subject).change(DEFINITION.begin + id, { author, lifetime: PIPELINE.ttl * 1000 });
  }

  /**
   * Undoes a client's changes of definitions by the same rule as for facts. With `dry`, only reports the changes that it would
   * undo.
   */
  undo(caller: Caller, rangeOf: (id: string) => UndoRange, dry: boolean, noteOf: NoteOf): Promise<UndoResult> {
    const undone: UndoResult = { removed: [], restored: [], skipped: [] };
    return this.#serialize(caller.subject, async () => {
      undone.skipped.length = 0;
      const suspects: StoredEntry[] = [];
      for await (const found of this.#each(caller.subject))
        if (isInUndoRange(found.entry, rangeOf(found.stored.definition.id))) suspects.push(found);
      for (const found of suspects) {
        const { id } = found.stored.definition;
        const present = withoutNumber(found);
        const reversal = planRevert(present, await this.#versions(caller.subject, found), rangeOf(id));
        if (reversal.what === 'untouched') continue;
        if (reversal.what === 'skipped' || !mayChange(caller, attributed(found).author)) undone.skipped.push(id);
        else {
          const note = noteOf('undo', id);
          if (!dry && reversal.what === 'removed') await this.#remove(caller.subject, found, note);
          else if (!dry && reversal.what === 'restored') {
            const { author, value, expiresAt } = restoredVersion(present, reversal.to, this.#store.now());
            const lifetime = expiresAt - this.#store.now();
            await this.#supersede(caller.subject, found, author, JSON.parse(value) as StoredDefinition, note, lifetime);
          }
          undone[reversal.what].push(id);
        }
      }
      return undone;
    });
  }

  async #find(subject: string, id: string): Promise<StoredEntry> {
    const entry = await this.#space(subject).get(DEFINITION.begin + id);
    if (entry) return { entry, stored: read(entry) };
    throw new Failure('not_found', 'There is no such pipeline; list the pipelines to see their ids.');
  }

  async *#each(subject: string): AsyncGenerator<StoredEntry> {
    const query = { sort: 'updated', category: DEFINITION.category, limit: SLICE } as const;
    for await (const entry of allEntries(this.#space(subject), query)) yield { entry, stored: read(entry) };
  }

  /** Returns the earlier versions, newest first, up to the first missing version. */
  async #versions(subject: string, { entry, stored: { definition, version } }: StoredEntry): Promise<Entry[]> {
    const versions: Entry[] = [];
    for (let number = version - 1; number >= 1 && versions.length < HISTORY_VERSIONS; number -= 1) {
      const slot = await this.#space(subject).get(slotOf(definition.id, number));
      const stored = slot && read(slot);
      if (!slot || stored?.version !== number) break;
      versions.push({ ...withoutNumber({ entry: slot, stored }), createdAt: entry.createdAt, updatedAt: stored.at ?? 0 });
    }
    return versions;
  }

  /**
   * Replaces a definition. Stores the previous version in its slot first, so that a crash duplicates that version instead of
   * losing it.
   */
  async #supersede(
    subject: string,
    { entry, stored }: StoredEntry,
    author: Author,
    next: StoredDefinition,
    note?: ActivityNote,
    lifetime = PIPELINE.ttl * 1000,
  ): Promise<Entry> {
    await this.#space(subject).put({
      key: slotOf(stored.definition.id, stored.version),
      value: JSON.stringify({ ...stored, at: entry.updatedAt } satisfies StoredVersion),
      category: VERSION.category,
      tags: [],
      author: entry.author,
      lifetime: entry.expiresAt - this.#store.now(),
    });
    return await this.#write(subject, author, { ...next, version: stored.version + 1 }, entry.value, { note, lifetime });
  }

  /** Writes a definition. Throws `EntryChanged` if its present text is not `replaced` any more. */
  async #write(
    subject: string,
    author: Author,
    stored: StoredVersion,
    replaced: string | undefined,
    { note, lifetime = PIPELINE.ttl * 1000 }: { note?: ActivityNote | undefined; lifetime?: number },
  ): Promise<Entry> {
    const key = DEFINITION.begin + stored.definition.id;
    const draft = { key, value: JSON.stringify(stored), category: DEFINITION.category, tags: [], author, lifetime };
    return (await putFairly(this.#store, subject, author, () => this.#space(subject).put(draft, note, { value: replaced })))
      .entry;
  }

  async #remove(subject: string, { entry, stored: { definition, version } }: StoredEntry, note: ActivityNote): Promise<void> {
    const oldest = Math.max(1, version - HISTORY_VERSIONS);
    for (let number = oldest; number < version; number += 1) {
      await this.#store.forget(subject, { kinds: ['pack'], key: slotOf(definition.id, number), session: '' });
    }
    await this.#store.forget(subject, { kinds: ['pack'], key: entry.key, session: '' }, note);
  }

  #space(subject: string): Space {
    return this.#store.space({ subject }, 'pack');
  }

  /** Runs a change after the earlier ones of this process. Runs it again if another process has changed the definition meanwhile. */
  #serialize<T>(subject: string, job: () => Promise<T>): Promise<T> {
    const attempt = (): Promise<T> =>
      job().catch((error: unknown) => {
        if (error instanceof EntryChanged) return attempt();
        throw error;
      });
    const turn = (this.#changing.get(subject) ?? Promise.resolve()).then(attempt);
    const settled = turn.catch(() => undefined);
    this.#changing.set(subject, settled);
    void settled.then(() => this.#changing.get(subject) === settled && this.#changing.delete(subject));
    return turn;
  }
}

/** Returns the key of the slot for a version. The number of slots is fixed, so a new version overwrites the oldest. */
const slotOf = (id: string, version: number): string => `${VERSION.begin}${id}/${version % HISTORY_VERSIONS}`;

function read({ value }: Entry): StoredVersion {
  const parsed = JSON.parse(value) as StoredVersion | PipelineDefinition;
  return 'definition' in parsed ? parsed : { definition: parsed, legacy: true, version: 1 };
}

const attributed = ({
  entry: { author, updatedAt, expiresAt },
  stored: { definition, owner, wrote, legacy },
}: StoredEntry): AttributedDefinition => ({
  definition,
  author: { client: author.client, token: author.token, owner: owner === true },
  originalClient: wrote,
  legacy: legacy === true,
  updatedAt,
  expiresAt,
});

/** Returns the entry without its version number, so that contents can be compared. */
const withoutNumber = ({ entry, stored: { version: _version, at: _at, ...stored } }: StoredEntry): Entry => ({
  ...entry,
  category: DEFINITION.category,
  value: JSON.stringify(stored),
});

/** Whether a write would change neither the definition nor its author. */
const isSame = ({ entry, stored }: StoredEntry, caller: Caller, next: StoredDefinition): boolean =>
  JSON.stringify(stored.definition) === JSON.stringify(next.definition) &&
  stored.legacy !== true &&
  stored.owner === next.owner &&
  clientId(entry.author) === clientId(caller);

function requireMayChange(caller: Caller, found: StoredEntry): void {
  const { author } = attributed(found);
  if (mayChange(caller, author)) return;
  const whose = author.owner ? 'the owner' : author.client;
  throw new Failure(
    'invalid_input',
    `id belongs to a pipeline by ${whose}, which only ${author.owner ? 'the owner' : 'its author and the owner'} can change or delete; choose another id, or ask the owner.`,
  );
}

export const ADOPTION_NEEDED =
  'This pipeline was stored before authors were recorded, so it cannot run. Ask the owner of this memory to review and adopt it.';

/** Returns why the pipeline cannot run until the owner adopts it, or undefined if it can run. */
export function whyAdoptionNeeded(
  { author, legacy }: AttributedDefinition,
  isRunnable: (author: DefinitionAuthor) => boolean,
): string | undefined {
  if (legacy) return ADOPTION_NEEDED;
  return isRunnable(author)
    ? undefined
    : `The author of this pipeline, ${author.client}, has no valid token any more, so the pipeline cannot run until the owner of this memory adopts it.`;
}
