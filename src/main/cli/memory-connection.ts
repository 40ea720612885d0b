import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { type OperationName, operations, type OperationOutput, type OperationRequest } from '../../contract/operations.ts';
import { findOwnerClient } from '../../listeners/endpoint.ts';
import type { Config, HostMachine } from '../config/config.ts';
import { describeUnreachable, readUnreachable } from '../unreachable.ts';
import { Interrupted } from './interrupted.ts';

/** The memory, wherever it is: in the program that runs, or opened for this command alone. Both answer the same. */
export interface MemoryConnection extends AsyncDisposable {
  /** The program that answers, if one runs. */
  readonly program: { readonly url: string; readonly pid: number } | undefined;
  call<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<OperationOutput<Name>>;
}

interface Circumstances {
  readonly environment: HostMachine['environment'];
  readonly version: string;
  readonly interrupted: AbortSignal;
}

/** Another command needs the memory for a moment only; a program that starts needs longer until it answers. */
const PATIENCE_MS = 3000;
const BETWEEN_MS = 50;

export async function connectMemory(config: Config, circumstances: Circumstances): Promise<MemoryConnection> {
  const { interrupted } = circumstances;
  let until = Infinity;
  for (;;) {
    const found = (await running(config)) ?? (await openedHere(config, circumstances).catch(unlessBusy));
    if (!(found instanceof Error)) return endingWith(interrupted, found);
    const unreachable = readUnreachable(config.folder);
    if (unreachable) throw new Failure('unavailable', describeUnreachable(unreachable), { cause: found });
    // Not from the start of this command: on a busy machine that alone may take as long.
    until = Math.min(until, performance.now() + PATIENCE_MS);
    if (performance.now() > until) {
      throw new Failure(
        'unavailable',
        'Another Helmdeck Memory holds this data folder and does not answer; wait until it has ended, or end it, and try again.',
        { cause: found },
      );
    }
    if (interrupted.aborted) throw interrupted.reason;
    await wait(BETWEEN_MS);
  }
}

async function running({ folder }: Config): Promise<MemoryConnection | undefined> {
  const program = await findOwnerClient(folder);
  if (!program) return undefined;
  return {
    program,
    call: (name, input) => program.call(name, input),
    [Symbol.asyncDispose]: () => Promise.resolve(program[Symbol.dispose]()),
  };
}

/** Only these wait for the processes of the owner's own packs. */
const concernsPacks = (name: OperationName): boolean =>
  name === 'packs' || name === 'pack' || operations[name].scope === 'packs:run';

/** What would be gone with this command, a moment after it had been promised. */
const KEEPING: ReadonlySet<OperationName> = new Set(['remember', 'import', 'mintToken', 'connectClient']);

async function openedHere(config: Config, { environment, version }: Circumstances): Promise<MemoryConnection> {
  // Loaded when it is needed: where the program runs, nobody waits for it.
  const { openMemory: openCore } = await import('../open-memory.ts');
  const core = await openCore(config, { environment, version, desktop: false });
  const caller = {
    subject: 'me',
    client: 'command-line',
    transport: 'owner',
    token: '',
    scopes: new Set(['admin'] as const),
    owner: true,
  };
  return {
    program: undefined,
    async call(name, input) {
      if (core.store.status().kept === 'memory' && KEEPING.has(name)) {
        throw new Failure(
          'key_unavailable',
          'There is no key yet, so nothing would be kept; make one with: helmdeck-memory key init (or key init --file where there is no keychain).',
        );
      }
      if (concernsPacks(name)) await core.loadPacks();
      return core.perform(caller, name, input);
    },
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

/** Held by somebody else, as against every other reason why it cannot be opened. */
function unlessBusy(error: unknown): Error {
  const cause = error instanceof Failure ? error.cause : undefined;
  if (cause instanceof Error && 'code' in cause && cause.code === 'SQLITE_BUSY') return cause;
  throw error;
}

/** Nobody waits for an answer after a signal; closing lets what was begun come to a safe end. */
function endingWith(interrupted: AbortSignal, memory: MemoryConnection): MemoryConnection {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const stop = (): void => reject(interrupted.reason instanceof Error ? interrupted.reason : new Interrupted(1));
  if (interrupted.aborted) stop();
  interrupted.addEventListener('abort', stop, { once: true });
  return {
    program: memory.program,
    call: (name, input) => Promise.race([memory.call(name, input), promise]),
    async [Symbol.asyncDispose]() {
      interrupted.removeEventListener('abort', stop);
      await memory[Symbol.asyncDispose]();
    },
  };
}
