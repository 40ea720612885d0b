import { Failure } from '../../contract/failure.ts';
import type { OperationName, Request } from '../../contract/operations.ts';
import type { Build } from '../build.ts';
import { type Config, type Machine, readConfig } from '../config.ts';
import { readSettings, type Settings } from '../settings-file.ts';
import { jsonText } from './layout.ts';
import type { MemoryAtHand } from './memory-at-hand.ts';
import { type Streams, Terminal } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Everything outside of us, handed in. */
export interface World extends Machine, Streams, Build {
  now(): number;
  /** Aborted with an `Interrupted` by a signal. */
  readonly interrupted: AbortSignal;
}

/** What a command works with: its answer goes out here, and the memory is opened when it is first asked for. */
export class Desk implements AsyncDisposable {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly version: string;
  readonly updates: string;
  /** The machine as it is, without what a configuration file adds. */
  readonly machine: Machine;
  readonly streams: Streams;
  readonly interrupted: AbortSignal;
  readonly now: () => number;
  #settings: Settings | undefined;
  #memory: Promise<MemoryAtHand> | undefined;

  constructor(world: World, json: boolean) {
    const { environment, interrupted, version, updates } = world;
    this.terminal = new Terminal(world, { noColour: (environment['NO_COLOR'] ?? '') !== '', interrupted });
    this.json = json;
    this.version = version;
    this.updates = updates;
    this.machine = world;
    this.streams = world;
    this.interrupted = interrupted;
    this.now = () => world.now();
  }

  /** Read when it is first asked for: what needs no memory needs no settings. */
  get settings(): Settings {
    return (this.#settings ??= readSettings(this.machine));
  }

  get environment(): Machine['environment'] {
    return this.settings.environment;
  }

  get config(): Config {
    const { platform } = this.machine;
    return readConfig({ environment: this.environment, platform, home: () => this.machine.home() });
  }

  /** Refuses what the memory would refuse, before anybody is asked whether it is meant. */
  async check<Name extends OperationName>(name: Name, input: Request<Name>): Promise<void> {
    const [{ operations }, { explain }] = await Promise.all([
      import('../../contract/operations.ts'),
      import('../../contract/explain.ts'),
    ]);
    const parsed = operations[name].input().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explain(parsed.error, input), { cause: parsed.error });
  }

  /** The running program, or the memory itself where none runs. */
  memory(): Promise<MemoryAtHand> {
    this.#memory ??= this.#find();
    return this.#memory;
  }

  /** For what only one process may do, and the program has the memory while it runs. */
  async withoutProgram(): Promise<void> {
    const { findProgram } = await import('../../listeners/endpoint.ts');
    using program = await findProgram(this.config.folder);
    if (!program) return;
    throw new Failure(
      'store_unavailable',
      `Helmdeck Memory is running (process ${program.pid}), and this needs the memory for itself; end it, and try again.`,
    );
  }

  /** The answer as it came for a script, or in lines for a person. */
  async answer(json: unknown, lines: () => readonly string[]): Promise<void> {
    await this.terminal.say(...(this.json ? [jsonText(json)] : lines()));
  }

  /** Whether the owner means it. Where nobody can be asked, `--yes` must have said so. */
  async confirm(yes: boolean, question: () => Promise<string> | string): Promise<boolean> {
    if (yes) return true;
    if (!this.terminal.answers) {
      throw new UsageError('Nobody can be asked here whether this is meant; add --yes if it is.');
    }
    return /^y(es)?$/i.test((await this.terminal.ask(`${await question()} [y/N] `)).trim());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const memory = await this.#memory?.catch(() => undefined);
    await memory?.[Symbol.asyncDispose]();
  }

  async #find(): Promise<MemoryAtHand> {
    const { memoryAtHand } = await import('./memory-at-hand.ts');
    return memoryAtHand(this.config, this);
  }
}
