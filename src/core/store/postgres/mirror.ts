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
export type Topic = 'meta' | 'keys' | 'namespaces' | 'revocations';

/** The topic of a namespace and kind whose entries were changed. */
export const spaceTopic = (namespace: number, kind: number): string => `space ${namespace} ${kind}`;

/** Copies in RAM of the small tables, so that a write need not query them. Read again when another process has changed them. */
export class Mirror {
  readonly meta = new Map<string, Meta>();
  keys: StoredKeyRecord[] = [];
  readonly namespaces = new Map<number, NamespaceRow>();
  readonly #ids = new Map<string, number>();

  async read(run: RunQuery, topics: ReadonlySet<string>): Promise<void> {
    await Promise.all([
      topics.has('meta') && this.#readMeta(run),
      topics.has('keys') && this.#readKeys(run),
      topics.has('namespaces') && this.#readNamespaces(run),
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
    for (const row of rows) this.addNamespace(row);
  }

  addNamespace(row: NamespaceRow): void {
    this.namespaces.set(row.id, row);
    this.#ids.set(nameOf(row), row.id);
  }

  removeNamespace(id: number): void {
    const row = this.namespaces.get(id);
    this.namespaces.delete(id);
    if (row) this.#ids.delete(nameOf(row));
  }

  idOf(namespace: Namespace): number | undefined {
    return this.#ids.get(nameOf(namespace));
  }

  idsOf(subject: string): number[] {
    return [...this.namespaces.values()].filter((row) => row.subject === subject).map(({ id }) => id);
  }
}

const nameOf = ({ subject, session = '' }: Namespace): string => `${subject.length}:${subject}${session}`;

export const namespaceAt = ({ subject, session }: NamespaceRow): Namespace =>
  session === '' ? { subject } : { subject, session };
