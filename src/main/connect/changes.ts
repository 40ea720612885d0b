import { existsSync, rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../contract/failure.ts';
import { digestOf, isReadableByOthers, restoreMode, readConfigFile, replaceConfigFile } from './config-file.ts';
import type { EditStep, RunStep, Step, LocalMachine } from './connector.ts';

/** Wraps each edit so that the messages of its errors name the edited file. */
export const withPathsInErrors = (steps: readonly Step[]): Step[] =>
  steps.map((step) => {
    if (step.does === 'edit') return withPathInErrors(step);
    return step.does === 'run' && step.instead ? { ...step, instead: withPathInErrors(step.instead) } : step;
  });

const withPathInErrors = ({ edit, ...step }: EditStep): EditStep => ({
  ...step,
  edit(before) {
    try {
      return edit(before);
    } catch (error) {
      throw addPath(step.path, error);
    }
  },
});

/** Prefixes a failure's message with the path, unless the message already contains the path. */
export function addPath(path: string, error: unknown): unknown {
  if (!(error instanceof Failure) || error.message.includes(path)) return error;
  return new Failure(error.code, `${path}: ${error.message}`, { cause: error });
}

/** Returns the edit steps, and the edits that the preview shows instead of a client's command. */
export function editsIn(steps: readonly Step[]): EditStep[] {
  const edits = steps.map((step) => (step.does === 'edit' ? step : step.does === 'run' ? step.instead : undefined));
  return edits.filter((edit) => edit !== undefined);
}

export function pathsIn(steps: readonly Step[]): string[] {
  const paths = steps.map((step) => (step.does === 'edit' ? [step.path] : step.does === 'run' ? step.touches : []));
  return [...new Set(paths.flat())];
}

interface Deps {
  readonly machine: LocalMachine;
  readonly name: string;
  readonly steps: readonly Step[];
}

/**
 * Runs the steps that connect or disconnect a client, and can undo their changes. Preserves changes that other programs make to
 * the same files meanwhile.
 */
export class StepRunner {
  readonly #deps: Deps;
  /** Original content of each file, by the path in the steps; undefined for a file that did not exist. */
  readonly before: ReadonlyMap<string, Buffer | undefined>;
  /** Original permissions of each file that will contain a token and that other users can read. */
  readonly exposedModes: ReadonlyMap<string, number>;
  /** Digest of each file after our last change to that file. */
  readonly #written = new Map<string, string>();
  readonly #ran: RunStep[] = [];

  constructor(deps: Deps) {
    this.#deps = deps;
    this.before = new Map(pathsIn(deps.steps).map((path) => [path, readConfigFile(path)?.bytes]));
    const holding = editsIn(deps.steps).filter(({ holdsToken }) => holdsToken);
    const modes = holding.map(({ path }) => [path, readConfigFile(path)?.mode ?? 0] as const);
    this.exposedModes = new Map(modes.filter(([, mode]) => isReadableByOthers(mode)));
  }

  async run(): Promise<void> {
    for (const step of this.#deps.steps) {
      if (step.does === 'run') await this.#runProgram(step);
      else if (step.does === 'remove') rmSync(step.folder, { recursive: true, force: true });
      else this.#write(step.path, this.before.get(step.path), step.edit(textOf(this.before.get(step.path))));
    }
  }

  /**
   * Restores every file that the steps changed. In a file that another program has changed since, `removals` restore only the
   * original entry.
   */
  async rollBack(removals: readonly EditStep[]): Promise<void> {
    this.#restore(removals);
    for (const { program, environment, back } of this.#ran.toReversed()) {
      if (!back || !existsSync(back.made)) continue;
      await this.#deps.machine.run(program, back.args, environment);
      // Delete the folder here too: a program that failed before it registered the folder does not delete the folder.
      rmSync(back.made, { recursive: true, force: true });
      this.#restore(removals);
    }
  }

  #write(path: string, now: Buffer | undefined, wanted: string | undefined): void {
    const bytes = wanted === undefined ? undefined : Buffer.from(wanted);
    if (digestOf(bytes) !== digestOf(now)) replaceConfigFile(path, digestOf(now), bytes, this.exposedModes.has(path));
    this.#written.set(path, digestOf(bytes));
  }

  async #runProgram(step: RunStep): Promise<void> {
    const { machine } = this.#deps;
    const modes = step.touches.map((path) => [path, readConfigFile(path)?.mode] as const);
    this.#ran.push(step);
    const { code, stdout, stderr } = await machine.run(step.program, step.args, step.environment);
    try {
      this.#applyEdit(step, code, (stderr.trim() || stdout.trim()).split('\n').at(-1) ?? '');
    } finally {
      // Restore the mode, because some programs replace the file and change its mode. Restore the mode after the content: when a
      // running OpenClaw notices a change of mode, it misses a change of content directly afterwards.
      for (const [path, mode] of modes) if (mode !== undefined) restoreMode(path, mode);
    }
  }

  /** Accepts the file that the client's program wrote, or applies our edit instead. */
  #applyEdit({ instead, needed }: RunStep, code: number, lastLine: string): void {
    if (code !== 0 && (!instead || needed)) {
      throw new Failure('handler_failed', `${this.#deps.name} could not be connected: ${lastLine.slice(0, 300)}`);
    }
    if (!instead) return;
    const { path, edit } = instead;
    const before = this.before.get(path);
    const now = readConfigFile(path);
    // Keep a file that the program created: the user had no content in it, and the program may add settings that the client
    // needs. The edit then adds what the program does not know, such as our hooks.
    if (code === 0 && before === undefined && now) this.#write(path, now.bytes, edit(now.text));
    else this.#write(path, now?.bytes, edit(this.#isUnchangedByOthers(path, now?.bytes) ? textOf(before) : now?.text));
  }

  #restore(removals: readonly EditStep[]): void {
    for (const [path, bytes] of this.before) {
      const now = readConfigFile(path);
      const ours = this.#isUnchangedByOthers(path, now?.bytes);
      this.#write(
        path,
        now?.bytes,
        ours ? textOf(bytes) : (removals.find((one) => one.path === path)?.edit(now?.text) ?? now?.text),
      );
    }
    for (const [path, mode] of this.exposedModes) restoreMode(path, mode);
  }

  /** True if only we and the programs that we ran have changed the file. */
  #isUnchangedByOthers(path: string, now: Buffer | undefined): boolean {
    const before = this.before.get(path);
    const digest = digestOf(now);
    if (digest === digestOf(before) || digest === this.#written.get(path)) return true;
    const touching = this.#ran.filter((step) => step.touches.includes(path));
    return touching.length > 0 && touching.every(({ others }) => !others || areOthersUnchanged(others, before, now));
  }
}

const textOf = (bytes: Buffer | undefined): string | undefined => bytes?.toString('utf8');

/** True if the parts of the file that the client's program does not change are the same in `before` and `now`. */
function areOthersUnchanged(others: (text: string) => unknown, before: Buffer | undefined, now: Buffer | undefined): boolean {
  try {
    return isDeepStrictEqual(others(textOf(before) ?? ''), others(textOf(now) ?? ''));
  } catch {
    return false;
  }
}
