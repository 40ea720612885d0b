import type { MemoryStore } from '../../../src/core/store/store.ts';
import { after, factsOf, type Held, isHeld, type Line, type Op, writtenBy } from './ops.ts';

interface Key {
  readonly session: string;
  readonly key: string;
  /** The allowed contents: several while the outcome of a step is unknown. */
  may: Held[];
  /** No version from before this step may reappear. */
  forgottenBy: number;
}

/**
 * Knows the allowed contents of a memory: for each key, the last acknowledged step or any later step of the same
 * writer whose outcome is unknown.
 */
export class Oracle {
  readonly #keys = new Map<string, Key>();
  readonly #pending = new Map<number, Op>();
  acknowledged = 0;
  lastId = 0;
  readonly refused = new Map<string, number>();
  readonly violations: string[] = [];

  hear(line: Line): void {
    if (line.says === 'asks') {
      this.#pending.set(line.op.id, line.op);
      this.lastId = Math.max(this.lastId, line.op.id);
    } else if (line.says === 'kept') {
      this.acknowledged += 1;
      this.#end(line.id, (key, op) => {
        key.may = key.may.map((held) => after(op, held));
        if (op.what.startsWith('forget')) key.forgottenBy = op.id;
      });
    } else if (line.says === 'refused') {
      this.refused.set(line.code, (this.refused.get(line.code) ?? 0) + 1);
      // After disk_full nothing was written. After a disk error the outcome is unknown.
      if (line.code === 'disk_full' && this.#pending.get(line.id)?.what.startsWith('forget') !== true)
        this.#pending.delete(line.id);
      else this.#end(line.id, leaveOpen);
    } else if (line.says === 'read') {
      const key = this.#key(line.op.session, line.op.key);
      const { held } = line;
      const seen = held === 'unexpected content' ? [] : key.may.filter((may) => same(may, held));
      if (seen.length === 0)
        this.violations.push(`step ${line.op.id} read ${told(held)} where ${key.may.map(told).join(' or ')} stood`);
      else key.may = [seen[0]];
    }
  }

  /** Every key that any step used. */
  keys(): readonly { readonly session: string; readonly key: string }[] {
    return [...this.#keys.values()];
  }

  /** The worker has exited: the outcome of its pending steps is unknown. */
  lostSight(): void {
    for (const id of this.#pending.keys()) this.#end(id, leaveOpen);
  }

  /** Compares the contents of the memory with the allowed contents. */
  async examine(store: MemoryStore): Promise<void> {
    let living = 0;
    for (const key of this.#keys.values()) {
      const facts = factsOf(store, key.session);
      const entry = await facts.get(key.key);
      const fits = key.may.filter((held) => isHeld(entry, held));
      const name = `${key.session}/${key.key}`;
      if (fits.length === 0) {
        this.violations.push(
          `${name} holds ${entry ? `step ${writtenBy(entry.value)} (${entry.category})` : 'nothing'} where ${key.may.map(told).join(' or ')} stood`,
        );
      }
      for (const version of await facts.history(key.key)) {
        if (writtenBy(version.value) < key.forgottenBy)
          this.violations.push(`${name} has a version again that step ${key.forgottenBy} forgot`);
      }
      if (entry) living += 1;
      key.may = [fits[0]];
    }
    const counted = (await store.namespaces()).reduce((sum, { count }) => sum + count, 0);
    if (counted !== living) this.violations.push(`${counted} facts exist, and ${living} of them were written`);
    const verified = await store.upkeep?.verify();
    if (!verified || verified.broken > 0 || verified.structure.length > 0)
      this.violations.push(`verification reported ${JSON.stringify(verified)}`);
  }

  #end(id: number, settle: (key: Key, op: Op) => void): void {
    const op = this.#pending.get(id);
    if (!op) return;
    this.#pending.delete(id);
    if (op.what !== 'forget session') settle(this.#key(op.session, op.key), op);
    else for (const key of this.#keys.values()) if (key.session === op.session) settle(key, op);
  }

  #key(session: string, key: string): Key {
    const name = `${session}/${key}`;
    const found = this.#keys.get(name) ?? { session, key, may: [undefined], forgottenBy: 0 };
    this.#keys.set(name, found);
    return found;
  }
}

function leaveOpen(key: Key, op: Op): void {
  for (const held of key.may.map((before) => after(op, before))) {
    if (!key.may.some((one) => same(one, held))) key.may.push(held);
  }
}

const same = (one: Held, other: Held): boolean =>
  one?.id === other?.id && one?.size === other?.size && one?.category === other?.category;

const told = (held: Held | 'unexpected content'): string =>
  held === undefined ? 'nothing' : held === 'unexpected content' ? held : `step ${held.id} (${held.category})`;
