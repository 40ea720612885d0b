import { setImmediate as nextTurn } from 'node:timers/promises';
import { MY_DEFAULTS } from '../../contract/limits.ts';
import type { MyDefaults } from '../../contract/views.ts';
import { requireKey } from '../crypto/require-key.ts';
import type { Entry, EntryEvent, MemoryStore } from '../store/store.ts';
import { type AuditRow, parseAuditRow } from './audit.ts';

/** Rows decrypted per event loop turn: few enough that other callers notice no delay. */
const SLICE = 50;
/** Subjects kept in memory. The least recently used is dropped. */
const KNOWN = 16;

type Learned = Omit<MyDefaults, 'scope' | 'fetched_at'>;

type Finding = NonNullable<MyDefaults['common_findings']>[number];

interface Known extends Omit<AuditRow, 'findings'> {
  /** References to the shared findings of the subject: thousands of rows share a few. */
  readonly findings: readonly Finding[];
  readonly expiresAt: number;
}

interface Shelf {
  readonly rows: Map<number, Known>;
  /** Counted incrementally: there may be fifty times as many findings as rows. */
  readonly findings: Map<string, Finding>;
  built: Promise<void>;
  /** Valid until a row is added, removed or expires. */
  learned: { readonly answer: Learned; readonly until: number } | undefined;
}

/**
 * Learns what each caller usually runs from the audit rows. Decrypts each row once, in slices, and follows every commit. Keeps
 * the result in RAM only, and drops it when the memory is locked.
 */
export class Defaults implements Disposable {
  readonly #store: MemoryStore;
  readonly #following: Disposable;
  /** By subject, least recently used first. */
  readonly #shelves = new Map<string, Shelf>();

  constructor(store: MemoryStore) {
    this.#store = store;
    this.#following = store.onEntryEvent((change) => this.#hear(change));
  }

  async of(subject: string): Promise<Learned> {
    const shelf = this.#shelf(subject);
    await shelf.built;
    // The index may have been built before the memory was locked.
    requireKey(this.#store);
    const now = this.#store.now();
    if (shelf.learned && now < shelf.learned.until) return shelf.learned.answer;
    let until = Infinity;
    for (const [row, { expiresAt }] of shelf.rows) {
      if (expiresAt <= now) drop(shelf, row);
      else until = Math.min(until, expiresAt);
    }
    shelf.learned = { answer: learn(shelf), until };
    return shelf.learned.answer;
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#shelves.clear();
  }

  #shelf(subject: string): Shelf {
    const known = this.#shelves.get(subject);
    this.#shelves.delete(subject);
    const shelf = known ?? { rows: new Map(), findings: new Map(), built: Promise.resolve(), learned: undefined };
    this.#shelves.set(subject, shelf);
    if (known) return known;
    const [oldest] = this.#shelves.size > KNOWN ? this.#shelves.keys() : [];
    if (oldest !== undefined) this.#shelves.delete(oldest);
    shelf.built = this.#build(subject, shelf).catch((error: unknown) => {
      if (this.#shelves.get(subject) === shelf) this.#shelves.delete(subject);
      throw error;
    });
    return shelf;
  }

  async #build(subject: string, shelf: Shelf): Promise<void> {
    const space = this.#store.space({ subject }, 'audit');
    for (let after = {}; ;) {
      const { entries, rows, next } = await space.page({ sort: 'updated', limit: SLICE, ...after });
      for (const [index, entry] of entries.entries()) add(shelf, rows[index] ?? 0, entry);
      await nextTurn();
      if (!next) return;
      after = { after: next };
    }
  }

  #hear(change: EntryEvent): void {
    // The memory may have been locked, and everything here was decrypted with its key.
    if (change.what === 'reset') this.#shelves.clear();
    else if (change.what === 'deleted') {
      for (const shelf of this.#shelves.values()) drop(shelf, change.row);
    } else if (change.kind === 'audit') {
      const shelf = this.#shelves.get(change.namespace.subject);
      if (shelf) add(shelf, change.row, change.entry);
    }
  }
}

function add(shelf: Shelf, row: number, entry: Entry): void {
  const known = parseAuditRow(entry);
  if (!known) return;
  drop(shelf, row);
  const findings = known.findings.map(({ code, severity }) => {
    const name = nameOf(code, severity);
    const finding = shelf.findings.get(name) ?? { code, severity, count: 0 };
    finding.count += 1;
    shelf.findings.set(name, finding);
    return finding;
  });
  shelf.rows.set(row, { ...known, findings, expiresAt: entry.expiresAt });
  shelf.learned = undefined;
}

function drop(shelf: Shelf, row: number): void {
  const known = shelf.rows.get(row);
  if (!known) return;
  shelf.rows.delete(row);
  for (const finding of known.findings) {
    finding.count -= 1;
    if (finding.count === 0) shelf.findings.delete(nameOf(finding.code, finding.severity));
  }
  shelf.learned = undefined;
}

const nameOf = (code: string, severity: string): string => JSON.stringify([code, severity]);

/** Counts successful runs for usage, and all runs for findings. */
function learn(shelf: Shelf): Learned {
  const rows = [...shelf.rows.values()];
  const newest = rows.toSorted((one, other) => (one.sequence < other.sequence ? 1 : -1));
  const habits = (kind: Known['kind']) => habitsOf(rows.filter((row) => row.kind === kind && row.succeeded));
  const findings = mostCommon(shelf.findings.values());
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

function habitsOf(rows: readonly Known[]) {
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

/** The most frequent value of each field. Ties go to the smallest value. */
function usualInputs(rows: readonly Known[]): Record<string, string> | undefined {
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

/** Selects the top findings without sorting all of them: thousands may occur only once. */
function mostCommon(findings: Iterable<Finding>): Finding[] {
  const most: Finding[] = [];
  for (const finding of findings) {
    const last = most[MY_DEFAULTS.findings - 1];
    if (last && commoner(last, finding) <= 0) continue;
    const place = most.findIndex((other) => commoner(finding, other) < 0);
    most.splice(place < 0 ? most.length : place, 0, { ...finding });
    most.length = Math.min(most.length, MY_DEFAULTS.findings);
  }
  return most;
}

const commoner = (one: Finding, other: Finding): number =>
  other.count - one.count || compare(one.code, other.code) || compare(one.severity, other.severity);

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
