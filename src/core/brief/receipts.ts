import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Caller } from '../access/caller.ts';
import { type Receipt, receiptOf } from '../operations/activity.ts';
import type { Entry, EntryEvent, MemoryStore } from '../store/store.ts';

/** Rows that are decrypted without a pause, so that other calls are not delayed. */
const SLICE = 100;
/** Maximum number of subjects whose receipts are in RAM. The least recently used are dropped. */
const MAX_SUBJECTS = 64;
/** Maximum number of sessions of a subject in RAM. The least recently used are dropped. */
const MAX_SESSIONS = 1000;
/** Milliseconds that a brief waits for the receipts of earlier sessions. Those of the present session are the newest, so they are first. */
const BUILD_GRACE_MS = 50;

/** What a session was told. */
export interface ToldFacts {
  /** When each fact was told, by key. Last told last. */
  readonly told: Map<string, number>;
  /** When the session got the brief for its start. */
  startedAt: number | undefined;
  /** The last prompt, as a digest, and when it came, on the steady clock. In RAM only. */
  prompt: { readonly digest: string; readonly at: number } | undefined;
  /** When the session was last told everything again, on the steady clock. In RAM only. */
  repeatedAt: number | undefined;
}

/** What the instructions of the MCP server told a client, by key, and when, on the steady clock. */
interface Greeting {
  readonly at: number;
  readonly told: ReadonlyMap<string, number>;
}

type ClientOfSubject = Pick<Caller, 'subject' | 'client'>;

const nameOf = ({ subject, client }: ClientOfSubject): string => JSON.stringify([subject, client]);

interface SubjectReceipts {
  /** The receipts by row number. */
  readonly rows: Map<number, Receipt>;
  readonly sessions: Map<string, ToldFacts>;
  /** Rows that were deleted during the build, because a page that was read before can still contain them. Undefined after the build. */
  deleted: Set<number> | undefined;
  built: Promise<void>;
}

/** How often a fact was put before an agent. */
interface ShownCount {
  readonly count: number;
  readonly client: string;
  readonly at: number;
}

/**
 * What was put before which agent, and what each session was told (R-BRIEF-07, R-BRIEF-08). Read once from the activity rows of a
 * subject, in slices, and kept current by the commits. In RAM only, and dropped when the memory is locked, because it contains keys.
 */
export class Receipts implements Disposable {
  readonly #store: Pick<MemoryStore, 'space' | 'onEntryEvent' | 'onKeyChange' | 'refresh'>;
  readonly #subjects = new Map<string, SubjectReceipts>();
  /** The last greeting of each client. */
  readonly #greetings = new Map<string, Greeting>();
  #subscription: Disposable | undefined;
  #keyChanges: Disposable | undefined;

  constructor(store: Pick<MemoryStore, 'space' | 'onEntryEvent' | 'onKeyChange' | 'refresh'>) {
    this.#store = store;
  }

  /** Returns what a session was told. The caller changes the result when it tells more. */
  async session(subject: string, id: string): Promise<ToldFacts> {
    await this.#store.refresh?.();
    const receipts = this.#of(subject);
    await Promise.race([receipts.built, wait(BUILD_GRACE_MS)]);
    // The receipts may have been dropped meanwhile, by a lock.
    return sessionOf(this.#of(subject), id);
  }

  /** Remembers what the instructions of the MCP server tell a client, which does not name its session. */
  greet(client: ClientOfSubject, at: number, told: Greeting['told']): void {
    this.#keyChanges ??= this.#store.onKeyChange(() => this.#greetings.clear());
    this.#greetings.set(nameOf(client), { at, told });
  }

  /** Returns what a client was told by its last greeting, once. Undefined if it was before the given time. */
  takeGreeting(client: ClientOfSubject, since: number): Greeting['told'] | undefined {
    const greeting = this.#greetings.get(nameOf(client));
    this.#greetings.delete(nameOf(client));
    return greeting && greeting.at > since ? greeting.told : undefined;
  }

  /** Returns how often a fact was shown since it was created. Undefined if it was not shown. */
  async shown(subject: string, { key, createdAt }: Pick<Entry, 'key' | 'createdAt'>): Promise<ShownCount | undefined> {
    const receipts = this.#of(subject);
    await receipts.built;
    let count = 0;
    let last: Receipt | undefined;
    for (const receipt of receipts.rows.values()) {
      if (receipt.at < createdAt || !receipt.keys.includes(key)) continue;
      count += 1;
      if (!last || receipt.at >= last.at) last = receipt;
    }
    return last && { count, client: last.client, at: last.at };
  }

  [Symbol.dispose](): void {
    this.#drop();
    this.#keyChanges?.[Symbol.dispose]();
    this.#keyChanges = undefined;
    this.#greetings.clear();
  }

  #drop(): void {
    this.#subscription?.[Symbol.dispose]();
    this.#subscription = undefined;
    this.#subjects.clear();
  }

  #of(subject: string): SubjectReceipts {
    const known = this.#subjects.get(subject);
    this.#subjects.delete(subject);
    const receipts = known ?? {
      rows: new Map(),
      sessions: new Map(),
      deleted: new Set(),
      built: Promise.resolve(),
    };
    this.#subjects.set(subject, receipts);
    if (known) return known;
    this.#subscription ??= this.#store.onEntryEvent((event) => this.#follow(event));
    const [oldest] = this.#subjects.size > MAX_SUBJECTS ? this.#subjects.keys() : [];
    if (oldest !== undefined) this.#subjects.delete(oldest);
    receipts.built = this.#build(subject, receipts)
      .catch(() => {
        // A failed build is tried again at the next call. Until then, sessions may be told something twice.
        if (this.#subjects.get(subject) === receipts) this.#subjects.delete(subject);
      })
      .finally(() => (receipts.deleted = undefined));
    return receipts;
  }

  /** Adds rows page by page, newest first. */
  async #build(subject: string, receipts: SubjectReceipts): Promise<void> {
    const space = this.#store.space({ subject }, 'activity');
    /** The sessions that were told everything again. What they were told before does not count. */
    const repeated = new Set<string>();
    for (let after = {}; ;) {
      const { entries, rows, next } = await space.page({ sort: 'updated', uncached: true, limit: SLICE, ...after });
      for (const [position, entry] of entries.entries()) {
        const row = rows[position];
        const receipt = receiptOf(entry);
        if (!receipt || row === undefined || receipts.rows.has(row) || receipts.deleted?.has(row)) continue;
        receipts.rows.set(row, receipt);
        const { session, moment } = receipt;
        if (session === undefined || repeated.has(session)) continue;
        addOlder(sessionOf(receipts, session), receipt);
        if (moment === 'repeat') repeated.add(session);
      }
      if (!next) return;
      await nextTurn();
      after = { after: next };
    }
  }

  #follow(event: EntryEvent): void {
    if (event.what === 'reset') return this.#drop();
    if (event.what === 'deleted') {
      for (const receipts of this.#subjects.values()) remove(receipts, event.row);
      return;
    }
    if (event.kind !== 'activity' || event.namespace.session !== undefined) return;
    const receipts = this.#subjects.get(event.namespace.subject);
    const receipt = receipts && receiptOf(event.entry);
    if (!receipt) return;
    receipts.deleted?.delete(event.row);
    receipts.rows.set(event.row, receipt);
    // The row may be of another process, or of this one, which told the session before it wrote the row.
    if (receipt.session !== undefined) addNewer(sessionOf(receipts, receipt.session), receipt);
  }
}

function sessionOf({ sessions }: SubjectReceipts, id: string): ToldFacts {
  const known = sessions.get(id) ?? { told: new Map(), startedAt: undefined, prompt: undefined, repeatedAt: undefined };
  sessions.delete(id);
  sessions.set(id, known);
  const [oldest] = sessions.size > MAX_SESSIONS ? sessions.keys() : [];
  if (oldest !== undefined) sessions.delete(oldest);
  return known;
}

/** Adds a receipt that is older than those before. */
function addOlder(session: ToldFacts, { keys, at, moment }: Receipt): void {
  const newer = [...session.told];
  session.told.clear();
  for (const key of keys) session.told.set(key, at);
  for (const [key, time] of newer) {
    session.told.delete(key);
    session.told.set(key, time);
  }
  if (moment !== 'prompt') session.startedAt ??= at;
}

/** Adds a receipt that was just committed. */
function addNewer(session: ToldFacts, { keys, at, moment }: Receipt): void {
  if (moment === 'repeat') for (const [key, time] of session.told) if (time < at) session.told.delete(key);
  for (const key of keys) session.told.set(key, Math.max(at, session.told.get(key) ?? 0));
  if (moment !== 'prompt') session.startedAt = Math.max(at, session.startedAt ?? 0);
}

function remove({ rows, sessions, deleted }: SubjectReceipts, row: number): void {
  deleted?.add(row);
  const receipt = rows.get(row);
  if (!receipt) return;
  rows.delete(row);
  const session = receipt.session === undefined ? undefined : sessions.get(receipt.session);
  for (const key of receipt.keys) if (session?.told.get(key) === receipt.at) session.told.delete(key);
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
