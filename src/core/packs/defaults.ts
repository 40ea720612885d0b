import { setImmediate as nextTurn } from 'node:timers/promises';
import { MY_DEFAULTS } from '../../contract/limits.ts';
import type { MyDefaults } from '../../contract/views.ts';
import type { Caller } from '../access/caller.ts';
import { requireKey } from '../crypto/require-key.ts';
import { clientId } from '../store/entry.ts';
import type { Entry, EntryEvent, MemoryStore } from '../store/store.ts';
import { type AuditRow, parseAuditRow } from './audit.ts';

/** Number of rows that are decrypted in one turn of the event loop. It is small, so that other callers are not delayed. */
const SLICE = 50;
/** Maximum subjects with an index in memory. The index of the least recently used subject is dropped. */
const MAX_INDEXES = 16;

type LearnedDefaults = Omit<MyDefaults, 'scope' | 'fetched_at'>;

type Finding = NonNullable<MyDefaults['common_findings']>[number];

type ClientFinding = Finding & { readonly client: string };

interface IndexedRow extends Omit<AuditRow, 'findings'> {
  /** References to the shared findings of the subject, because thousands of rows share a few findings. */
  readonly findings: readonly ClientFinding[];
  /** The client that ran the pack or pipeline. */
  readonly client: string;
  readonly expiresAt: number;
}

interface HabitIndex {
  readonly rows: Map<number, IndexedRow>;
  /**
   * The findings by client, code and severity. Counted with each row, because there can be fifty times as many findings as rows.
   */
  readonly findings: Map<string, ClientFinding>;
  /** Row numbers that were deleted during the build, because a page that was read before can still contain them. */
  deleted: Set<number> | undefined;
  built: Promise<void>;
  /**
   * What was learned for each client, and for all clients together under the empty string. Valid until a row is added or removed,
   * or expires.
   */
  readonly learned: Map<string, LearnedDefaults>;
  learnedUntil: number;
}

/**
 * Learns from the audit rows what each caller usually runs. Decrypts each row only once, and updates the index with every commit.
 * The index is in RAM only, and is dropped when the memory is locked.
 */
export class Defaults implements Disposable {
  readonly #store: MemoryStore;
  /** The subscription to changes of entries. Set while an index is cached. */
  #subscription: Disposable | undefined;
  /** The indexes by subject, least recently used first. */
  readonly #indexes = new Map<string, HabitIndex>();

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** A client gets only what was learned from its own runs: inputs and findings are text that other clients could write. */
  async of(caller: Pick<Caller, 'subject' | 'client' | 'token' | 'owner'>): Promise<LearnedDefaults> {
    const client = caller.owner === true ? '' : clientId(caller);
    if (this.#store.refresh) await this.#store.refresh();
    const index = this.#indexOf(caller.subject);
    await index.built;
    // Throw if the memory was locked after the index was built.
    requireKey(this.#store);
    const now = this.#store.now();
    if (now >= index.learnedUntil) {
      for (const [row, { expiresAt }] of index.rows) if (expiresAt <= now) drop(index, row);
      index.learnedUntil = index.rows.values().reduce((first, { expiresAt }) => Math.min(first, expiresAt), Infinity);
    }
    const answer = index.learned.get(client) ?? learn(index, client);
    index.learned.set(client, answer);
    return answer;
  }

  [Symbol.dispose](): void {
    this.#subscription?.[Symbol.dispose]();
    this.#subscription = undefined;
    this.#indexes.clear();
  }

  #indexOf(subject: string): HabitIndex {
    const known = this.#indexes.get(subject);
    this.#indexes.delete(subject);
    const index = known ?? {
      rows: new Map(),
      findings: new Map(),
      deleted: new Set(),
      built: Promise.resolve(),
      learned: new Map(),
      learnedUntil: 0,
    };
    this.#indexes.set(subject, index);
    if (known) return known;
    this.#subscription ??= this.#store.onEntryEvent((change) => this.#update(change));
    const [oldest] = this.#indexes.size > MAX_INDEXES ? this.#indexes.keys() : [];
    if (oldest !== undefined) this.#indexes.delete(oldest);
    index.built = this.#build(subject, index)
      .catch((error: unknown) => {
        if (this.#indexes.get(subject) === index) this.#indexes.delete(subject);
        throw error;
      })
      .finally(() => (index.deleted = undefined));
    return index;
  }

  /** Adds rows page by page. A row that is already in the index was changed during the build, so it is newer than the page. */
  async #build(subject: string, index: HabitIndex): Promise<void> {
    const space = this.#store.space({ subject }, 'audit');
    for (let after = {}; ;) {
      const { entries, rows, next } = await space.page({ sort: 'updated', limit: SLICE, ...after });
      for (const [position, entry] of entries.entries()) {
        const row = rows[position];
        if (row !== undefined && !index.rows.has(row) && !index.deleted?.has(row)) add(index, row, entry);
      }
      await nextTurn();
      if (!next) return;
      after = { after: next };
    }
  }

  #update(change: EntryEvent): void {
    // Drop all indexes: the memory may have been locked, and the rows were decrypted with its key.
    if (change.what === 'reset') this[Symbol.dispose]();
    else if (change.what === 'deleted') {
      for (const index of this.#indexes.values()) {
        drop(index, change.row);
        index.deleted?.add(change.row);
      }
    } else if (change.kind === 'audit') {
      const index = this.#indexes.get(change.namespace.subject);
      index?.deleted?.delete(change.row);
      if (index) add(index, change.row, change.entry);
    }
  }
}

function add(index: HabitIndex, row: number, entry: Entry): void {
  const known = parseAuditRow(entry);
  if (!known) return;
  drop(index, row);
  const client = clientId(entry.author);
  const findings = known.findings.map(({ code, severity }) => {
    const name = nameOf({ client, code, severity });
    const finding = index.findings.get(name) ?? { client, code, severity, count: 0 };
    finding.count += 1;
    index.findings.set(name, finding);
    return finding;
  });
  index.rows.set(row, { ...known, findings, client, expiresAt: entry.expiresAt });
  invalidate(index);
}

function drop(index: HabitIndex, row: number): void {
  const known = index.rows.get(row);
  if (!known) return;
  index.rows.delete(row);
  for (const finding of known.findings) {
    finding.count -= 1;
    if (finding.count === 0) index.findings.delete(nameOf(finding));
  }
  invalidate(index);
}

function invalidate(index: HabitIndex): void {
  index.learned.clear();
  index.learnedUntil = 0;
}

const nameOf = ({ client = '', code, severity }: Omit<Finding, 'count'> & { readonly client?: string }): string =>
  JSON.stringify([client, code, severity]);

/** Computes habits from successful runs only, and findings from all runs. */
function learn(index: HabitIndex, client: string): LearnedDefaults {
  const rows = [...index.rows.values()].filter((row) => client === '' || row.client === client);
  const newest = rows.toSorted((one, other) => (one.sequence < other.sequence ? 1 : -1));
  const habits = (kind: IndexedRow['kind']) => habitsOf(rows.filter((row) => row.kind === kind && row.succeeded));
  const findings = mostCommon(findingsOf(index, client));
  return {
    packs: habits('pack').map(({ count, ...habit }) => ({ ...habit, calls: count })),
    pipelines: habits('pipeline').map(({ count, ...habit }) => ({ ...habit, runs: count })),
    ...(findings.length > 0 && { common_findings: findings }),
    recent: newest.slice(0, MY_DEFAULTS.recent).map(({ kind, id, outcome, at, durationMs }) => ({
      kind,
      id,
      outcome,
      at_unix: at,
      ...(durationMs !== undefined && { duration_ms: durationMs }),
    })),
    ...(rows.length === 0 && { note: 'Nothing has run yet, or its record has expired or been forgotten.' }),
  };
}

function findingsOf({ findings }: HabitIndex, client: string): Iterable<Finding> {
  if (client !== '') return findings.values().filter((finding) => finding.client === client);
  const total = new Map<string, Finding>();
  for (const { code, severity, count } of findings.values()) {
    const name = nameOf({ code, severity });
    total.set(name, { code, severity, count: count + (total.get(name)?.count ?? 0) });
  }
  return total.values();
}

function habitsOf(rows: readonly IndexedRow[]) {
  const habits = [...Map.groupBy(rows, ({ id }) => id)].map(([id, own]) => ({
    id,
    count: own.length,
    last_used_unix: own.reduce((last, { at }) => Math.max(last, at), 0),
  }));
  const ranked = habits
    .toSorted(
      (one, other) => other.count - one.count || other.last_used_unix - one.last_used_unix || (one.id < other.id ? -1 : 1),
    )
    .slice(0, MY_DEFAULTS.each);
  return ranked.map((habit) => {
    const inputs = usualInputs(rows.filter(({ id }) => id === habit.id));
    return { ...habit, ...(inputs && { common_inputs: inputs }) };
  });
}

/** Returns the most frequent value of each field. If several values tie, returns the smallest. */
function usualInputs(rows: readonly IndexedRow[]): Record<string, string> | undefined {
  const fields = new Map<string, Map<string, number>>();
  for (const { inputs } of rows) {
    for (const [field, value] of Object.entries(inputs)) {
      const values = fields.get(field) ?? new Map<string, number>();
      fields.set(field, values.set(value, (values.get(value) ?? 0) + 1));
    }
  }
  if (fields.size === 0) return undefined;
  const usual = [...fields].map(([field, values]): [string, string] => [field, mostFrequent(values)]);
  return Object.fromEntries(usual.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function mostFrequent(values: ReadonlyMap<string, number>): string {
  let best = { value: '', count: 0 };
  for (const [value, count] of values) {
    if (count > best.count || (count === best.count && value < best.value)) best = { value, count };
  }
  return best.value;
}

/** Returns the most common findings without sorting all of them, because thousands of findings can occur only once. */
function mostCommon(findings: Iterable<Finding>): Finding[] {
  const top: Finding[] = [];
  for (const finding of findings) {
    const last = top[MY_DEFAULTS.findings - 1];
    if (last && byFrequency(last, finding) <= 0) continue;
    const place = top.findIndex((other) => byFrequency(finding, other) < 0);
    const { code, severity, count } = finding;
    top.splice(place < 0 ? top.length : place, 0, { code, severity, count });
    top.length = Math.min(top.length, MY_DEFAULTS.findings);
  }
  return top;
}

const byFrequency = (one: Finding, other: Finding): number =>
  other.count - one.count || compare(one.code, other.code) || compare(one.severity, other.severity);

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
