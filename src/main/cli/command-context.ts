import { Failure } from '../../contract/failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import { type Config, type HostMachine, readConfig, requireValidAddress } from '../config/config.ts';
import { type LoadedSettings, readSettings } from '../config/settings-file.ts';
import type { BuildInfo } from '../roots/installation.ts';
import { UsageError } from './errors.ts';
import { columns, jsonText } from './layout.ts';
import type { MemoryConnection } from './memory-connection.ts';
import { type StandardStreams, Terminal } from './terminal.ts';

/** The process that runs the command: its environment, streams and clock. Tests pass a fake. */
export interface CommandLineHost extends HostMachine, StandardStreams, BuildInfo {
  now(): number;
  /** Aborted with an `Interrupted` error when the process receives SIGINT, SIGTERM or SIGHUP. */
  readonly interrupted: AbortSignal;
}

/** Gives a command its settings, its terminal and the memory. Opens the memory on first use. */
export class CommandContext implements AsyncDisposable {
  readonly terminal: Terminal;
  readonly json: boolean;
  /** The process that runs the command. Unlike `environment`, `host.environment` lacks the settings from config.json. */
  readonly host: CommandLineHost;
  #settings: LoadedSettings | undefined;
  #memory: Promise<MemoryConnection> | undefined;

  constructor(host: CommandLineHost, json: boolean) {
    const { environment, interrupted } = host;
    this.terminal = new Terminal(host, { noColour: (environment['NO_COLOR'] ?? '') !== '', interrupted });
    this.json = json;
    this.host = host;
  }

  get now(): number {
    return this.host.now();
  }

  get interrupted(): AbortSignal {
    return this.host.interrupted;
  }

  /** All settings. Read on first use, so that commands such as `help` work with an invalid config.json. */
  get settings(): LoadedSettings {
    return (this.#settings ??= readSettings(this.host));
  }

  get environment(): HostMachine['environment'] {
    return this.settings.environment;
  }

  get config(): Config {
    requireValidAddress(this.settings);
    return readConfig(this.settings);
  }

  /** Throws if the input of an operation is invalid. Call this before asking the user to confirm the operation. */
  async validateInput<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<void> {
    const [{ operations }, { explainIssue }] = await Promise.all([
      import('../../contract/operations.ts'),
      import('../../contract/schema.ts'),
    ]);
    const parsed = operations[name].input().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, input), { cause: parsed.error });
  }

  /** Connects to a running Helmdeck Memory. If there is none, opens the memory in this process. */
  memory(): Promise<MemoryConnection> {
    this.#memory ??= this.#connect();
    return this.#memory;
  }

  async call<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<OperationOutput<Name>> {
    return (await this.memory()).call(name, input);
  }

  /** Throws if Helmdeck Memory is running. For commands that need exclusive access to the memory file. */
  async requireNoProgram(): Promise<void> {
    const { findOwnerClient } = await import('../../listeners/endpoint.ts');
    using program = await findOwnerClient(this.config.folder);
    if (!program) return;
    throw new Failure(
      'unavailable',
      `Helmdeck Memory is running (process ${program.pid}), but this command needs exclusive access. Quit the program and try again.`,
    );
  }

  /** Throws if a database server stores the memory. For commands that work on memory files only. */
  requireMemoryFile(): void {
    if (!this.config.database) return;
    throw new Failure(
      'invalid_input',
      'HELMDECK_DATABASE_URL is set, so the memory is in a PostgreSQL database, but this command works on memory files only. See docs/server.md.',
    );
  }

  /** Prints the result: as JSON with `--json`, otherwise as lines. */
  async printResult(json: unknown, lines: () => readonly string[]): Promise<void> {
    await this.terminal.print(...(this.json ? [jsonText(json)] : lines()));
  }

  /** Prints rows in columns, or `hintIfEmpty` if there are no rows. */
  async printTable(json: unknown, rows: readonly (readonly string[])[], hintIfEmpty?: string): Promise<void> {
    await this.printResult(json, () => columns(rows));
    if (rows.length === 0 && hintIfEmpty !== undefined) this.hint(hintIfEmpty);
  }

  /** Prints a message on standard error for a human reader. Prints nothing with `--json`. */
  hint(...lines: readonly string[]): void {
    if (!this.json) this.terminal.printToStderr(...lines);
  }

  /** Asks the user to confirm, unless `--yes` was given. Throws if there is no terminal to ask on. */
  async confirm(yes: boolean, question: () => Promise<string> | string): Promise<boolean> {
    if (yes) return true;
    if (!this.terminal.canAsk) {
      throw new UsageError('This command asks for confirmation, but standard input is not a terminal. Add --yes to confirm.');
    }
    const confirmed = /^y(es)?$/i.test((await this.terminal.ask(`${await question()} [y/N] `)).trim());
    if (!confirmed) this.terminal.printToStderr('Nothing was changed.');
    return confirmed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const memory = await this.#memory?.catch(() => undefined);
    await memory?.[Symbol.asyncDispose]();
  }

  async #connect(): Promise<MemoryConnection> {
    const { connectMemory } = await import('./memory-connection.ts');
    return connectMemory(this.config, { ...this.host, ...this.settings });
  }
}
