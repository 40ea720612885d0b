import { Failure } from '../../contract/failure.ts';
import type { OperationName, OperationRequest } from '../../contract/operations.ts';
import type { BuildInfo } from '../build-info.ts';
import { type Config, type HostMachine, readConfig } from '../config/config.ts';
import { readSettings, type LoadedSettings } from '../config/settings-file.ts';
import { jsonText } from './layout.ts';
import type { MemoryConnection } from './memory-connection.ts';
import { type StandardStreams, Terminal } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Everything outside of us, handed in. */
export interface CommandLineHost extends HostMachine, StandardStreams, BuildInfo {
  now(): number;
  /** Aborted with an `Interrupted` by a signal. */
  readonly interrupted: AbortSignal;
}

/** What a command works with: its answer goes out here, and the memory is opened when it is first asked for. */
export class CommandContext implements AsyncDisposable {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly version: string;
  readonly updates: string;
  /** The machine as it is, without what a configuration file adds. */
  readonly machine: HostMachine;
  readonly streams: StandardStreams;
  readonly interrupted: AbortSignal;
  readonly now: () => number;
  #settings: LoadedSettings | undefined;
  #memory: Promise<MemoryConnection> | undefined;

  constructor(world: CommandLineHost, json: boolean) {
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
  get settings(): LoadedSettings {
    return (this.#settings ??= readSettings(this.machine));
  }

  get environment(): HostMachine['environment'] {
    return this.settings.environment;
  }

  get config(): Config {
    const { platform } = this.machine;
    return readConfig({ environment: this.environment, platform, home: () => this.machine.home() });
  }

  /** Refuses what the memory would refuse, before anybody is asked whether it is meant. */
  async validateInput<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<void> {
    const [{ operations }, { explainIssue: explain }] = await Promise.all([
      import('../../contract/operations.ts'),
      import('../../contract/explain.ts'),
    ]);
    const parsed = operations[name].input().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explain(parsed.error, input), { cause: parsed.error });
  }

  /** The running program, or the memory itself where none runs. */
  memory(): Promise<MemoryConnection> {
    this.#memory ??= this.#find();
    return this.#memory;
  }

  /** For what only one process may do, and the program has the memory while it runs. */
  async requireNoProgram(): Promise<void> {
    const { findOwnerClient: findProgram } = await import('../../listeners/endpoint.ts');
    using program = await findProgram(this.config.folder);
    if (!program) return;
    throw new Failure(
      'unavailable',
      `Helmdeck Memory is running (process ${program.pid}), and this needs the memory for itself; end it, and try again.`,
    );
  }

  /** The answer as it came for a script, or in lines for a person. */
  async printResult(json: unknown, lines: () => readonly string[]): Promise<void> {
    await this.terminal.print(...(this.json ? [jsonText(json)] : lines()));
  }

  /** Whether the owner means it. Where nobody can be asked, `--yes` must have said so. */
  async confirm(yes: boolean, question: () => Promise<string> | string): Promise<boolean> {
    if (yes) return true;
    if (!this.terminal.canAsk) {
      throw new UsageError('Nobody can be asked here whether this is meant; add --yes if it is.');
    }
    return /^y(es)?$/i.test((await this.terminal.ask(`${await question()} [y/N] `)).trim());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const memory = await this.#memory?.catch(() => undefined);
    await memory?.[Symbol.asyncDispose]();
  }

  async #find(): Promise<MemoryConnection> {
    const { connectMemory: memoryAtHand } = await import('./memory-connection.ts');
    return memoryAtHand(this.config, this);
  }
}
