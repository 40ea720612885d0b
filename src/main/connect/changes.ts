import { existsSync, rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../contract/failure.ts';
import { digestOf, isReadableByOthers, restoreMode, readConfigFile, replaceConfigFile } from './config-file.ts';
import type { EditStep, RunStep, Step, LocalMachine } from './connector.ts';

/** The same steps, whose edits say which file it is that they refuse. */
export const withPathsInErrors = (steps: readonly Step[]): Step[] =>
  steps.map((step) => {
    if (step.does === 'edit') return named(step);
    return step.does === 'run' && step.instead ? { ...step, instead: named(step.instead) } : step;
  });

const named = ({ edit, ...step }: EditStep): EditStep => ({
  ...step,
  edit(before) {
    try {
      return edit(before);
    } catch (error) {
      throw naming(step.path, error);
    }
  },
});

/** What is wrong with a file, with its path where that is not said yet. */
export function naming(path: string, error: unknown): unknown {
  if (!(error instanceof Failure) || error.message.includes(path)) return error;
  return new Failure(error.code, `${path}: ${error.message}`, { cause: error });
}

/** What is changed by an edit, or shown as one. */
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
  /** As people know the client. */
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Carries out steps, and can put back what they changed. What others write meanwhile stays, whichever way it goes. */
export class Changes {
  readonly #deps: Deps;
  /** What each file held when we began: by its path, as it is named in steps. */
  readonly before: ReadonlyMap<string, Buffer | undefined>;
  /** The modes of those that others may read, and that come to hold a token. */
  readonly open: ReadonlyMap<string, number>;
  /** Digest of what each is since our last change. */
  readonly #left = new Map<string, string>();
  readonly #ran: RunStep[] = [];

  constructor(deps: Deps) {
    this.#deps = deps;
    this.before = new Map(pathsIn(deps.steps).map((path) => [path, readConfigFile(path)?.bytes]));
    const holding = editsIn(deps.steps).filter(({ holdsToken }) => holdsToken);
    const modes = holding.map(({ path }) => [path, readConfigFile(path)?.mode ?? 0] as const);
    this.open = new Map(modes.filter(([, mode]) => isReadableByOthers(mode)));
  }

  async carryOut(): Promise<void> {
    for (const step of this.#deps.steps) {
      if (step.does === 'run') await this.#run(step);
      else if (step.does === 'remove') rmSync(step.folder, { recursive: true, force: true });
      else this.#write(step.path, this.before.get(step.path), step.edit(textOf(this.before.get(step.path))));
    }
  }

  /** `without` puts what was there before in the place of ours, in a file that others have changed since. */
  async putBack(without: readonly EditStep[]): Promise<void> {
    this.#restore(without);
    for (const { program, environment, back } of this.#ran.toReversed()) {
      if (!back || !existsSync(back.made)) continue;
      await this.#deps.machine.run(program, back.args, environment);
      // It may have failed before it was known to its program.
      rmSync(back.made, { recursive: true, force: true });
      this.#restore(without);
    }
  }

  #write(path: string, now: Buffer | undefined, wanted: string | undefined): void {
    const bytes = wanted === undefined ? undefined : Buffer.from(wanted);
    if (digestOf(bytes) !== digestOf(now)) replaceConfigFile(path, digestOf(now), bytes, this.open.has(path));
    this.#left.set(path, digestOf(bytes));
  }

  async #run(step: RunStep): Promise<void> {
    const { machine } = this.#deps;
    const modes = step.touches.map((path) => [path, readConfigFile(path)?.mode] as const);
    this.#ran.push(step);
    const { code, stdout, stderr } = await machine.run(step.program, step.args, step.environment);
    try {
      this.#settle(step, code, (stderr.trim() || stdout.trim()).split('\n').at(-1) ?? '');
    } finally {
      // Some write a new file in the place of the old one, for their own eyes only or for all. Last: a running OpenClaw that hears of
      // a change of mode first does not hear of the one of content right behind it.
      for (const [path, mode] of modes) if (mode !== undefined) restoreMode(path, mode);
    }
  }

  /** What its program did is taken over, or left out for what our edit makes. */
  #settle({ instead, needed }: RunStep, code: number, said: string): void {
    if (code !== 0 && (!instead || needed)) {
      throw new Failure('handler_failed', `${this.#deps.name} refused to be connected: ${said.slice(0, 300)}`);
    }
    if (!instead) return;
    const { path, edit } = instead;
    const before = this.before.get(path);
    const now = readConfigFile(path);
    // Where there was no file, nothing can be lost, and what else belongs into a new one is for its program to know.
    if (code === 0 && before === undefined && now) this.#left.set(path, digestOf(now.bytes));
    else this.#write(path, now?.bytes, edit(this.#isOurDoing(path, now?.bytes) ? textOf(before) : now?.text));
  }

  #restore(without: readonly EditStep[]): void {
    for (const [path, bytes] of this.before) {
      const now = readConfigFile(path);
      const ours = this.#isOurDoing(path, now?.bytes);
      this.#write(
        path,
        now?.bytes,
        ours ? textOf(bytes) : (without.find((one) => one.path === path)?.edit(now?.text) ?? now?.text),
      );
    }
    for (const [path, mode] of this.open) restoreMode(path, mode);
  }

  /** Whether nobody but us, and the programs that we asked, has changed it since we began. */
  #isOurDoing(path: string, now: Buffer | undefined): boolean {
    const before = this.before.get(path);
    const digest = digestOf(now);
    if (digest === digestOf(before) || digest === this.#left.get(path)) return true;
    const touching = this.#ran.filter((step) => step.touches.includes(path));
    return touching.length > 0 && touching.every(({ others }) => !others || leaves(others, before, now));
  }
}

const textOf = (bytes: Buffer | undefined): string | undefined => bytes?.toString('utf8');

/** Whether what a program leaves alone says the same. */
function leaves(others: (text: string) => unknown, before: Buffer | undefined, now: Buffer | undefined): boolean {
  try {
    return isDeepStrictEqual(others(textOf(before) ?? ''), others(textOf(now) ?? ''));
  } catch {
    return false;
  }
}
