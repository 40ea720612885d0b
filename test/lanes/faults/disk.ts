import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Missing } from './lane.ts';
import type { Random } from './random.ts';

const PAGE = 4096;

/** A folder on a simulated disk with power cuts. flushed.c records the flushed data. */
export class Disk {
  readonly #folder: string;
  readonly #shim: string;
  #times = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#shim = join(folder, 'flushed.so');
    if (process.platform !== 'linux') throw new Missing('Linux, for a preloaded library');
    try {
      execFileSync('gcc', ['-O2', '-fPIC', '-shared', '-o', this.#shim, new URL('flushed.c', import.meta.url).pathname, '-ldl']);
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') throw new Missing('gcc');
      throw cause;
    }
  }

  get live(): string {
    return join(this.#folder, `live-${this.#times}`);
  }

  get #flushed(): string {
    return join(this.#folder, `flushed-${this.#times}`);
  }

  get environment(): Record<string, string> {
    return { LD_PRELOAD: this.#shim, LIVE: this.live, FLUSHED: this.#flushed };
  }

  /** An empty disk. */
  begin(): void {
    for (const old of [this.live, this.#flushed]) rmSync(old, { recursive: true, force: true });
    this.#times += 1;
    mkdirSync(this.live);
    mkdirSync(this.#flushed);
  }

  /** Replaces the live folder with the state after a power cut. */
  afterCut(survived: 'only flushed data' | 'flushed data and a random part of the rest', random: Random): string {
    const [live, flushed] = [this.live, this.#flushed];
    const survivors = new Survivors(
      live,
      flushed,
      survived === 'flushed data and a random part of the rest' ? random : undefined,
    );
    this.#times += 1;
    survivors.bringBack(statSync(live).ino, this.live);
    mkdirSync(this.#flushed);
    rmSync(live, { recursive: true });
    rmSync(flushed, { recursive: true });
    return this.live;
  }
}

interface Name {
  readonly inode: number;
  readonly name: string;
  readonly folder: boolean;
}

/** Builds the state after a cut. With `random`, some unflushed pages and folders have reached the disk too. */
class Survivors {
  readonly #flushed: string;
  readonly #chance: Random | undefined;
  /** Maps each inode to its path in the live folder. */
  readonly #live = new Map<number, string>();

  constructor(live: string, flushed: string, chance: Random | undefined) {
    this.#flushed = flushed;
    this.#chance = chance;
    this.#look(live);
  }

  bringBack(inode: number, to: string): void {
    mkdirSync(to, { mode: 0o700 });
    for (const { inode: found, name, folder } of this.#names(inode)) {
      if (folder) this.bringBack(found, join(to, name));
      else writeFileSync(join(to, name), this.#bytes(found), { mode: 0o600 });
    }
  }

  #look(path: string): void {
    const { ino } = statSync(path);
    this.#live.set(ino, path);
    if (statSync(path).isDirectory()) for (const name of readdirSync(path)) this.#look(join(path, name));
  }

  #names(inode: number): Name[] {
    const live = this.#live.get(inode);
    if (live !== undefined && this.#chance?.chance(50)) {
      return readdirSync(live, { withFileTypes: true }).map((entry) => {
        return { inode: statSync(join(live, entry.name)).ino, name: entry.name, folder: entry.isDirectory() };
      });
    }
    const file = join(this.#flushed, `${inode}.names`);
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    return lines.map((line) => {
      const [number = '', kind, ...name] = line.split(' ');
      return { inode: Number(number), name: name.join(' '), folder: kind === 'd' };
    });
  }

  #bytes(inode: number): Buffer {
    const file = join(this.#flushed, `${inode}`);
    const flushed = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    const live = this.#live.get(inode);
    if (live === undefined || !this.#chance) return flushed;
    const unflushed = readFileSync(live);
    const mixed = Buffer.alloc(this.#chance.one([flushed.length, unflushed.length]));
    flushed.copy(mixed);
    for (let at = 0; at < mixed.length; at += PAGE) {
      if (at < unflushed.length && this.#chance.chance(50)) unflushed.copy(mixed, at, at, at + PAGE);
    }
    return mixed;
  }
}
