import { Failure } from '../../contract/failure.ts';
import type { OperationName, OperationRequest } from '../../contract/operations.ts';
import type { BuildInfo } from '../build-info.ts';
import { type Config, type HostMachine, readConfig } from '../config/config.ts';
import { readSettings, type LoadedSettings } from '../config/settings-file.ts';
import { UsageError } from './errors.ts';
import { jsonText } from './layout.ts';
import type { MemoryConnection } from './memory-connection.ts';
import { type StandardStreams, Terminal } from './terminal.ts';

/** The process that the command line runs in; tests pass a fake. */
export interface CommandLineHost extends HostMachine, StandardStreams, BuildInfo {
  now(): number;
  /** Aborted with an `Interrupted` when a signal arrives. */
  readonly interrupted: AbortSignal;
}

/** What a command runs with. The memory is opened on first use. */
export class CommandContext implements AsyncDisposable {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly version: string;
  readonly updates: string;
  /** The environment of the process, without settings from config.json. */
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

  /** Read on first use, so that commands such as `help` work with an invalid config.json. */
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

  /** Rejects invalid input before the user is asked to confirm. */
  async validateInput<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<void> {
    const [{ operations }, { explainIssue: explain }] = await Promise.all([
      import('../../contract/operations.ts'),
      import('../../contract/schema.ts'),
    ]);
    const parsed = operations[name].input().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explain(parsed.error, input), { cause: parsed.error });
  }

  /** The running program, or the memory opened in this process if none runs. */
  memory(): Promise<MemoryConnection> {
    this.#memory ??= this.#find();
    return this.#memory;
  }

  /** Fails while the program runs, because this command needs the memory file to itself. */
  async requireNoProgram(): Promise<void> {
    const { findOwnerClient: findProgram } = await import('../../listeners/endpoint.ts');
    using program = await findProgram(this.config.folder);
    if (!program) return;
    throw new Failure(
      'unavailable',
      `Helmdeck Memory is running (process ${program.pid}), but this command needs exclusive access. Quit the program and try again.`,
    );
  }

  /** Prints the result: as JSON with `--json`, otherwise as lines. */
  async printResult(json: unknown, lines: () => readonly string[]): Promise<void> {
    await this.terminal.print(...(this.json ? [jsonText(json)] : lines()));
  }

  /** Asks the user to confirm. Without a terminal, `--yes` is required. */
  async confirm(yes: boolean, question: () => Promise<string> | string): Promise<boolean> {
    if (yes) return true;
    if (!this.terminal.canAsk) {
      throw new UsageError('This command asks for confirmation, but standard input is not a terminal. Add --yes to confirm.');
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
