import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type MemoryFact, NOW } from '../../bench/brief/memories.ts';
import type { OperationName } from '../../src/contract/operations.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import { type Clock, systemClock } from '../../src/core/time/clock.ts';
import { type Listener, startListener } from '../../src/listeners/listener.ts';
import { readConfig } from '../../src/main/config/config.ts';
import { CONNECTORS } from '../../src/main/connect/clients.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import type { LocalMachine } from '../../src/main/connect/connector.ts';
import { assemble, type RunningProgram } from '../../src/main/roots/assemble.ts';

const YEAR_SECONDS = 365 * 86_400;
/** The client that stored the planted facts. It is none of the agents in the lane. */
const PLANTER = 'cursor';
const MODEL_MS = 120_000;

/** A brief that a hook got. */
export interface HeardBrief {
  readonly prompt: string | undefined;
  readonly client: string;
  readonly text: string;
  readonly ms: number;
}

/** The running program with the facts of one person, which are as old as the person's memory says. */
export class HookMemory implements AsyncDisposable {
  readonly folder: string;
  readonly #program: RunningProgram;
  readonly #listener: Listener;
  readonly #briefs: HeardBrief[];

  private constructor(folder: string, program: RunningProgram, listener: Listener, briefs: HeardBrief[]) {
    this.folder = folder;
    this.#program = program;
    this.#listener = listener;
    this.#briefs = briefs;
  }

  static async open(facts: readonly MemoryFact[]): Promise<HookMemory> {
    const folder = mkdtempSync(join(tmpdir(), 'helmdeck-hooks-data-'));
    const environment = { HELMDECK_DATA_DIR: folder, HELMDECK_ADDR: '127.0.0.1:0', HELMDECK_MEMORY_KEY: 'ab'.repeat(32) };
    const config = readConfig({ environment, platform: process.platform, home: () => folder });
    const clock = new SlidingClock();
    const program = await assemble(config, { environment, desktop: false, version: '0.0.0', clock });
    const briefs: HeardBrief[] = [];
    for (const fact of facts.toSorted((one, other) => one.updatedAt - other.updatedAt)) {
      clock.ageMs = NOW - fact.updatedAt;
      const { key, value, category, tags } = fact;
      const author: Caller = {
        subject: 'me',
        client: fact.planted ? PLANTER : fact.client,
        transport: 'lane',
        token: '',
        scopes: new Set(['admin']),
      };
      await program.perform(author, 'remember', { key, value, category, tags: [...tags], ttl_seconds: YEAR_SECONDS });
    }
    clock.ageMs = 0;
    const perform = (async (caller: Caller, operation: OperationName, input: object, ...rest: never[]) => {
      const from = performance.now();
      const answer: unknown = await program.perform(caller, operation, input, ...rest);
      if (operation === 'brief') {
        const { prompt, text } = { ...input, ...Object(answer) } as { prompt?: string; text: string };
        briefs.push({ prompt, client: caller.client, text, ms: Math.round(performance.now() - from) });
      }
      return answer;
    }) as Perform;
    const listener = await startListener({
      perform,
      tokens: program.tokens,
      onChange: (hear) => program.store.onChange(hear),
      folder,
      address: '127.0.0.1:0',
      version: '0.0.0',
      clock: systemClock,
    });
    const memory = new HookMemory(folder, program, listener, briefs);
    await memory.#loadModel();
    return memory;
  }

  connections(machine: LocalMachine): Connections {
    const { store, tokens } = this.#program;
    return new Connections({ connectors: CONNECTORS, machine, tokens, folder: this.folder, now: () => store.now() });
  }

  /** Returns the briefs since the last call. */
  takeBriefs(): HeardBrief[] {
    return this.#briefs.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener.close();
    await this.#program[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Waits until all facts have a vector. */
  async #loadModel(): Promise<void> {
    const owner: Caller = { subject: 'me', client: 'lane', transport: 'lane', token: '', scopes: new Set(['admin']) };
    const end = performance.now() + MODEL_MS;
    while (performance.now() < end) {
      const { facts } = await this.#program.perform(owner, 'meaning', {});
      if (facts && facts.done === facts.total) return;
      await delay(500);
    }
    console.log('   the model is not loaded, so meanings are not compared');
  }
}

/** A clock that tells an earlier time, so that facts get their age. It runs as fast as the clock of the system. */
class SlidingClock implements Clock {
  ageMs = 0;
  uptimeOrigin = (): string | undefined => systemClock.uptimeOrigin();
  synchronized = (): Promise<boolean | undefined> => systemClock.synchronized();
  after = (ms: number, action: () => void): Disposable => systemClock.after(ms, action);
  now = (): number => Date.now() - this.ageMs;
  steady = (): number => performance.now() - this.ageMs;
  uptime = (): number => uptime() * 1000 + YEAR_SECONDS * 1000 - this.ageMs;
}

/** A part of the value that every agent passes to its model unchanged. */
export function needleOf(value: string): string {
  const parts = value.slice(0, 200).match(/[\w ,.:/-]+/g) ?? [];
  return parts.reduce((longest, one) => (one.length > longest.length ? one : longest), '');
}
