import type * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { requireCacheTtl } from '../../core/packs/cache.ts';
import { Catalogue } from '../../core/packs/catalogue.ts';
import type { Egress } from '../../core/packs/egress.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';
import type { ExecutionContext, Pack } from '../../core/packs/pack.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import { createLazyEgress } from '../packs.ts';
import { findConfinement, type Confinement } from './confinement.ts';
import { createMessageHandler, type NetworkAccess } from './message-handler.ts';
import { PackDescription, type PackTask } from './messages.ts';
import { type PackFile, readListedPack } from './pack-file.ts';
import { launchPackProcess, type PackProcess } from './pack-process.ts';
import { ProcessSlots } from './process-slots.ts';
import { runTask } from './run-task.ts';
import { toSafeLine } from './safe-line.ts';
import { schemaFrom } from './schema.ts';

/** To say what it is. Then it has asked nobody yet, so it is quick unless something is wrong. */
const DESCRIBING_MS = 10_000;
/** No subject is called so. */
const NOBODY = '';

export interface SkippedPack {
  readonly name: string;
  readonly why: string;
}

export interface OwnPacksOptions {
  readonly clock?: Clock;
  /** How `fetch` of a pack leaves the machine. */
  readonly egress?: Egress;
  /** What the operating system puts around each process. */
  readonly findConfinement?: () => Promise<Confinement>;
}

/** Packs of the owner's own. Each run is a process, and none outlives this. */
export class OwnPacks implements Disposable {
  readonly #under = new Set<PackProcess>();
  readonly #places = new ProcessSlots();
  readonly #clock: Clock;
  readonly #egress: Egress;
  readonly #confinement: () => Promise<Confinement>;
  #closed = false;

  constructor({
    clock = systemClock,
    egress = createLazyEgress({ clock }),
    findConfinement: confined = findConfinement,
  }: OwnPacksOptions = {}) {
    this.#clock = clock;
    this.#egress = egress;
    this.#confinement = confined;
  }

  /** Loads the listed packs of the folder and adds them to the catalogue. A pack with an error is skipped, and the rest is loaded. */
  async load(
    folder: string,
    names: readonly string[],
    catalogue = new Catalogue(),
  ): Promise<{ packs: readonly Pack[]; skipped: readonly SkippedPack[] }> {
    const found = await Promise.all(
      [...new Set(names)].map(async (name) => {
        try {
          return await this.describe(readListedPack(folder, name));
        } catch (error) {
          return { name, why: error instanceof Failure ? error.message : `${name} cannot be taken; check its file.` };
        }
      }),
    );
    const described = found.filter((one) => 'handler' in one);
    const refused = addTo(catalogue, described);
    const packs = described.filter((pack) => !refused.some(({ name }) => name === pack.name));
    return { packs, skipped: [...found.filter((one) => 'why' in one), ...refused] };
  }

  /** The pack that a file holds, as the engine runs it. */
  async describe(file: PackFile): Promise<Pack> {
    const { name, source, revision } = file;
    // Many that are listed are not many processes at a start.
    using _place = await this.#places.acquire(NOBODY, new AbortController().signal);
    const tooLong = new AbortController();
    using _limit = this.#clock.after(DESCRIBING_MS, () => tooLong.abort());
    const said = await this.#converse({ to: 'describe', name, source }, tooLong.signal, () => undefined).catch(
      (error: unknown) => {
        if (!tooLong.signal.aborted) throw error;
        throw new Failure('timeout', `${name} does not come to say what it is; what takes long belongs into its handler.`);
      },
    );
    if (said.is === 'failed') throw new Failure('handler_failed', `${name}: ${toSafeLine(said.message)}`);
    const { success, data, error } = PackDescription().safeParse(said.is === 'described' ? said.pack : undefined);
    if (!success) throw new Failure('invalid_input', `${name}: ${toSafeLine(whatIsWrong(error))}`);
    const { input, output, hosts: named = [], ...rest } = data;
    requireCacheTtl(name, rest.memory);
    const hosts = parseHostAllowlist(named, `add it to hosts in ${name}.mjs`);
    if (!hosts) throw new Failure('invalid_input', `${name}: hosts must be names, such as api.example.com or *.example.com.`);
    if (input['type'] !== 'object') throw new Failure('invalid_input', `${name}: its input must be z.object({ … }).`);
    return {
      ...rest,
      name,
      own: { revision, hosts: named },
      usesNetwork: named.length > 0,
      input: readable(name, input),
      output: readable(name, output),
      handler: (context) => this.#run(file, { egress: this.#egress, hosts }, context),
    };
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const process of this.#under) process.kill();
  }

  async #run({ name, source }: PackFile, outside: NetworkAccess, context: ExecutionContext): Promise<unknown> {
    const { input, caller, session, signal, memory } = context;
    using _place = await this.#places.acquire(caller.subject, signal);
    const refusals = new Map<number, Failure>();
    const task: PackTask = {
      to: 'run',
      name,
      source,
      input,
      caller: { subject: caller.subject, client: caller.client },
      ...(session !== undefined && { session }),
      ...(memory && { memory: memory.namespace }),
    };
    const said = await this.#converse(task, signal, createMessageHandler(context, outside, refusals));
    if (said.is === 'done') return said.output;
    if (said.is === 'described') throw new Failure('handler_failed', `${name} answered what was not asked; tell its author.`);
    // What the memory refused is told in its own words.
    const refused = said.refused === undefined ? undefined : refusals.get(said.refused);
    if (refused) throw refused;
    const remedy = said.code === 'invalid_input' ? '; compare it with the input schema of the pack.' : '';
    throw new Failure(said.code, `${remedy === '' ? `${name}: ` : ''}${toSafeLine(said.message)}${remedy}`);
  }

  async #converse(task: PackTask, signal: AbortSignal, hear: Parameters<typeof runTask>[0]['hear']): ReturnType<typeof runTask> {
    if (this.#closed) throw closing();
    const confined = await this.#confinement();
    // Closed or given up while the confinement was tried.
    if (this.#closed) throw closing();
    const process = launchPackProcess(confined);
    this.#under.add(process);
    try {
      return await runTask({ process, task, signal, hear });
    } finally {
      this.#under.delete(process);
    }
  }
}

const closing = (): Failure => new Failure('unavailable', 'The program is ending; ask again when it runs.');

/** Adds packs to the catalogue, and returns those that it refuses, with the reason. */
function addTo(catalogue: Catalogue, packs: readonly Pack[]): readonly SkippedPack[] {
  return packs.flatMap((pack) => {
    try {
      catalogue.add(pack);
      return [];
    } catch (error) {
      return [{ name: pack.name, why: asFailure(error).message }];
    }
  });
}

function readable(name: string, json: Record<string, unknown>): Pack['input'] {
  try {
    return schemaFrom(json);
  } catch (cause) {
    throw new Failure('invalid_input', `${name}: its schema says what cannot be checked here; make it simpler.`, { cause });
  }
}

function whatIsWrong({ issues: [first] }: z.ZodError): string {
  if (first === undefined) return 'it does not say what it is.';
  const field = first.path.join('.');
  return `${field === '' ? '' : `${field}: `}${first.message}; compare it with docs/packs.md.`;
}
