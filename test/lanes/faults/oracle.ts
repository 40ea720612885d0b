import type { MemoryStore } from '../../../src/core/store/store.ts';
import { after, factsOf, type Held, isHeld, type Line, type Op, writtenBy } from './ops.ts';

interface Key {
  readonly session: string;
  readonly key: string;
  /** What it may hold: one thing, or several while the fate of a step is unknown. */
  may: Held[];
  /** No version from before this step may ever be seen again. */
  forgottenBy: number;
}

/**
 * Knows what may stand in a memory: for each key the last step that was acknowledged, or any later one of the same
 * writer whose fate nobody was told; nothing else.
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
      // A full disk says that nothing was kept; a disk error leaves it open.
      if (line.code === 'disk_full' && this.#pending.get(line.id)?.what.startsWith('forget') !== true)
        this.#pending.delete(line.id);
      else this.#end(line.id, leaveOpen);
    } else if (line.says === 'read') {
      const key = this.#key(line.op.session, line.op.key);
      const { held } = line;
      const seen = held === 'something else' ? [] : key.may.filter((may) => same(may, held));
      if (seen.length === 0)
        this.violations.push(`step ${line.op.id} read ${told(held)} where ${key.may.map(told).join(' or ')} stood`);
      else key.may = [seen[0]];
    }
  }

  /** Every key that was ever asked for. */
  keys(): readonly { readonly session: string; readonly key: string }[] {
    return [...this.#keys.values()];
  }

  /** The worker is gone: what it had not been told may have happened or not. */
  lostSight(): void {
    for (const id of this.#pending.keys()) this.#end(id, leaveOpen);
  }

  /** Compares all that is there with all that may be there. */
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
          this.violations.push(`${name} has a version back that step ${key.forgottenBy} forgot`);
      }
      if (entry) living += 1;
      key.may = [fits[0]];
    }
    const counted = (await store.namespaces()).reduce((sum, { count }) => sum + count, 0);
    if (counted !== living) this.violations.push(`${counted} facts are there and ${living} of them were written`);
    const verified = await store.upkeep?.verify();
    if (!verified || verified.broken > 0 || verified.structure.length > 0)
      this.violations.push(`verification says ${JSON.stringify(verified)}`);
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

const told = (held: Held | 'something else'): string =>
  held === undefined ? 'nothing' : held === 'something else' ? held : `step ${held.id} (${held.category})`;
