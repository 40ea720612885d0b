import type { KeyRecord } from '../../crypto/find-keys.ts';
import type { Namespace } from '../store.ts';
import type { RunQuery } from './database.ts';

export interface NamespaceRow {
  readonly id: number;
  readonly subject: string;
  readonly session: string;
}

export type Meta = Buffer | string;
export type StoredKeyRecord = KeyRecord & { segment: number };

/** Parts of the database that a commit can change. The change log names them, so other processes read only these again. */
export type Topic = 'meta' | 'keys' | 'revocations' | typeof ALL_NAMESPACES | `namespace ${number}`;

/** Means that all namespaces must be read again. The change log names only single ones. */
export const ALL_NAMESPACES = 'namespaces';

/** The topic of a namespace that was created or deleted. */
export const namespaceTopic = (id: number): Topic => `namespace ${id}`;

/** The topic of a namespace and kind whose entries were changed. */
export const spaceTopic = (namespace: number, kind: number): string => `space ${namespace} ${kind}`;

/** Copies in RAM of the small tables, so that a write need not query them. Read again when another process has changed them. */
export class Mirror {
  readonly meta = new Map<string, Meta>();
  keys: StoredKeyRecord[] = [];
  readonly namespaces = new Map<number, NamespaceRow>();
  readonly #ids = new Map<string, number>();
  readonly #bySubject = new Map<string, Map<number, NamespaceRow>>();

  async read(run: RunQuery, topics: ReadonlySet<string>): Promise<void> {
    await Promise.all([
      topics.has('meta') && this.#readMeta(run),
      topics.has('keys') && this.#readKeys(run),
      topics.has(ALL_NAMESPACES) ? this.#readNamespaces(run) : this.#readSome(run, topics),
    ]);
  }

  async #readMeta(run: RunQuery): Promise<void> {
    const rows = await run<{ name: string; secret: Buffer | null; plain: string | null }>('SELECT name, secret, plain FROM meta');
    this.meta.clear();
    for (const { name, secret, plain } of rows) this.meta.set(name, secret ?? plain ?? '');
  }

  async #readKeys(run: RunQuery): Promise<void> {
    this.keys = await run<StoredKeyRecord>('SELECT id, role, proof, source, segment FROM master_key');
  }

  async #readNamespaces(run: RunQuery): Promise<void> {
    const rows = await run<NamespaceRow>('SELECT id, subject, session FROM namespace');
    this.namespaces.clear();
    this.#ids.clear();
    this.#bySubject.clear();
    for (const row of rows) this.addNamespace(row);
  }

  /** Reads the namespaces that the topics name. Those that are not found were deleted. */
  async #readSome(run: RunQuery, topics: ReadonlySet<string>): Promise<void> {
    const ids = [...topics].filter((topic) => topic.startsWith('namespace ')).map((topic) => Number(topic.split(' ')[1]));
    if (ids.length === 0) return;
    const rows = await run<NamespaceRow>('SELECT id, subject, session FROM namespace WHERE id = ANY ($1::bigint[])', [ids]);
    for (const id of ids) this.removeNamespace(id);
    for (const row of rows) this.addNamespace(row);
  }

  addNamespace(row: NamespaceRow): void {
    this.namespaces.set(row.id, row);
    this.#ids.set(nameOf(row), row.id);
    const known = this.#bySubject.get(row.subject);
    if (known) known.set(row.id, row);
    else this.#bySubject.set(row.subject, new Map([[row.id, row]]));
  }

  removeNamespace(id: number): void {
    const row = this.namespaces.get(id);
    if (!row) return;
    this.namespaces.delete(id);
    // A newer namespace can have the same name.
    if (this.#ids.get(nameOf(row)) === id) this.#ids.delete(nameOf(row));
    const others = this.#bySubject.get(row.subject);
    others?.delete(id);
    if (others?.size === 0) this.#bySubject.delete(row.subject);
  }

  idOf(namespace: Namespace): number | undefined {
    return this.#ids.get(nameOf(namespace));
  }

  /** Returns the namespaces of a subject: its own, and those of its sessions. */
  of(subject: string): NamespaceRow[] {
    return [...(this.#bySubject.get(subject)?.values() ?? [])];
  }
}

const nameOf = ({ subject, session = '' }: Namespace): string => `${subject.length}:${subject}${session}`;

export const namespaceAt = ({ subject, session }: NamespaceRow): Namespace =>
  session === '' ? { subject } : { subject, session };
