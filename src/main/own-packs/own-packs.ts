import type * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { requireCacheTtl } from '../../core/packs/cache.ts';
import { Catalogue } from '../../core/packs/catalogue.ts';
import type { Egress } from '../../core/packs/egress.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';
import type { ExecutionContext, Pack } from '../../core/packs/pack.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import { createLazyEgress } from '../egress/network-packs.ts';
import { findConfinement, type Confinement } from './confinement.ts';
import { createMessageHandler, type NetworkAccess } from './message-handler.ts';
import { PackDescription, type PackTask } from './messages.ts';
import { type PackFile, readListedPack } from './pack-file.ts';
import { launchPackProcess, type PackProcess } from './pack-process.ts';
import { ProcessSlots } from './process-slots.ts';
import { runTask } from './run-task.ts';
import { findRuntime, type Runtime } from './runtime.ts';
import { toSafeLine } from './safe-line.ts';
import { schemaFrom } from './schema.ts';

/** Time limit for a pack to describe itself. Normally fast, because describing sends no requests. */
const DESCRIBING_MS = 10_000;
/** Subject for which the slots for describing packs are counted. Not a valid name, so no caller has it. */
const NO_SUBJECT = '';

export interface SkippedPack {
  readonly name: string;
  readonly why: string;
}

export interface OwnPacksOptions {
  readonly clock?: Clock;
  /** Sends the HTTP requests that packs make with `fetch`. */
  readonly egress?: Egress;
  /** Returns the sandbox in which each pack's process runs. */
  readonly findConfinement?: () => Promise<Confinement>;
  /** Returns the files that each pack's process runs. Set only by tests. */
  readonly findRuntime?: () => Runtime;
}

/** Runs the owner's packs, each run in its own process. Disposing this object kills all processes. */
export class OwnPacks implements Disposable {
  readonly #running = new Set<PackProcess>();
  readonly #slots = new ProcessSlots();
  readonly #clock: Clock;
  readonly #egress: Egress;
  readonly #confinement: () => Promise<Confinement>;
  readonly #findRuntime: () => Runtime;
  #closed = false;

  constructor({
    clock = systemClock,
    egress = createLazyEgress({ clock }),
    findConfinement: confinement = findConfinement,
    findRuntime: runtime = findRuntime,
  }: OwnPacksOptions = {}) {
    this.#clock = clock;
    this.#egress = egress;
    this.#confinement = confinement;
    this.#findRuntime = runtime;
  }

  /** Loads the listed packs and adds them to the catalogue. Skips packs that have an error. */
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
          return { name, why: error instanceof Failure ? error.message : `${name} could not be loaded; check the pack's file.` };
        }
      }),
    );
    const described = found.filter((one) => 'handler' in one);
    const refused = addTo(catalogue, described);
    const packs = described.filter((pack) => !refused.some(({ name }) => name === pack.name));
    return { packs, skipped: [...found.filter((one) => 'why' in one), ...refused] };
  }

  /** Reads the description of a pack from its file, in a separate process. Returns a pack that the engine can run. */
  async describe(file: PackFile): Promise<Pack> {
    const { name, source, revision } = file;
    // Wait for a slot, so that few processes run when many packs are loaded at startup.
    using _slot = await this.#slots.acquire(NO_SUBJECT, new AbortController().signal);
    const timeout = new AbortController();
    using _limit = this.#clock.after(DESCRIBING_MS, () => timeout.abort());
    const result = await this.#runTask({ to: 'describe', name, source }, timeout.signal, () => undefined).catch(
      (error: unknown) => {
        if (!timeout.signal.aborted) throw error;
        throw new Failure('timeout', `${name} took too long to load; move slow work into the pack's handler.`);
      },
    );
    if (result.is === 'failed') throw new Failure('handler_failed', `${name}: ${toSafeLine(result.message)}`);
    const { success, data, error } = PackDescription().safeParse(result.is === 'described' ? result.pack : undefined);
    if (!success) throw new Failure('invalid_input', `${name}: ${toSafeLine(describeError(error))}`);
    const { input, output, hosts: declaredHosts = [], ...rest } = data;
    requireCacheTtl(name, rest.memory);
    const hosts = parseHostAllowlist(declaredHosts, `add it to \`hosts\` in ${name}.mjs`);
    if (!hosts)
      throw new Failure('invalid_input', `${name}: \`hosts\` must contain host names, such as api.example.com or *.example.com.`);
    if (input['type'] !== 'object') throw new Failure('invalid_input', `${name}: \`input\` must be z.object({ … }).`);
    return {
      ...rest,
      name,
      own: { revision, hosts: declaredHosts },
      usesNetwork: declaredHosts.length > 0,
      input: parseSchema(name, input),
      output: parseSchema(name, output),
      handler: (context) => this.#run(file, { egress: this.#egress, hosts }, context),
    };
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const process of this.#running) process.kill();
  }

  async #run({ name, source }: PackFile, network: NetworkAccess, context: ExecutionContext): Promise<unknown> {
    const { input, caller, session, signal, memory } = context;
    using _slot = await this.#slots.acquire(caller.subject, signal);
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
    const result = await this.#runTask(task, signal, createMessageHandler(context, network, refusals));
    if (result.is === 'done') return result.output;
    if (result.is === 'described')
      throw new Failure('handler_failed', `${name} sent an unexpected message; tell the pack's author.`);
    // If the run failed because a request was refused, report the original error of that request.
    const refused = result.refused === undefined ? undefined : refusals.get(result.refused);
    if (refused) throw refused;
    const remedy = result.code === 'invalid_input' ? "; compare the input with the pack's input schema." : '';
    throw new Failure(result.code, `${remedy === '' ? `${name}: ` : ''}${toSafeLine(result.message)}${remedy}`);
  }

  async #runTask(
    task: PackTask,
    signal: AbortSignal,
    onMessage: Parameters<typeof runTask>[0]['onMessage'],
  ): ReturnType<typeof runTask> {
    if (this.#closed) throw stopping();
    const confinement = await this.#confinement();
    // Check again, because this object may have been closed while the sandbox was tested.
    if (this.#closed) throw stopping();
    const process = launchPackProcess(confinement, this.#findRuntime);
    this.#running.add(process);
    try {
      return await runTask({ process, task, signal, onMessage });
    } finally {
      this.#running.delete(process);
    }
  }
}

const stopping = (): Failure => new Failure('unavailable', 'Helmdeck Memory is stopping; try again when it is running.');

/** Adds packs to the catalogue. Returns the packs that the catalogue refuses, each with the reason. */
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

function parseSchema(name: string, json: Record<string, unknown>): Pack['input'] {
  try {
    return schemaFrom(json);
  } catch (cause) {
    throw new Failure('invalid_input', `${name}: the pack's schema cannot be checked; simplify the schema.`, { cause });
  }
}

function describeError({ issues: [first] }: z.ZodError): string {
  if (first === undefined) return 'the pack has no description; see docs/packs.md.';
  const field = first.path.join('.');
  return `${field === '' ? '' : `${field}: `}${first.message}; see docs/packs.md.`;
}
