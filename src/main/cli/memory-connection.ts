import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { type OperationName, operations, type OperationOutput, type OperationRequest } from '../../contract/operations.ts';
import { findOwnerClient } from '../../listeners/endpoint.ts';
import type { Config } from '../config/config.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import { describeUnreachable, readUnreachable } from '../roots/unreachable.ts';
import { Interrupted } from './errors.ts';

/** A connection to the memory, through a running Helmdeck Memory or in this process. Both return the same results. */
export interface MemoryConnection extends AsyncDisposable {
  /** The running Helmdeck Memory. Undefined if this process opened the memory itself. */
  readonly program: { readonly url: string; readonly pid: number } | undefined;
  call<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<OperationOutput<Name>>;
}

interface ConnectOptions extends Pick<LoadedSettings, 'environment' | 'file' | 'fromFile'> {
  readonly version: string;
  readonly interrupted: AbortSignal;
}

/** Milliseconds to wait while another process has the memory open, such as another command or a starting program. */
const BUSY_TIMEOUT_MS = 3000;
const BETWEEN_MS = 50;

export async function connectMemory(config: Config, options: ConnectOptions): Promise<MemoryConnection> {
  const { interrupted } = options;
  let until = Infinity;
  for (;;) {
    const found = (await connectToProgram(config)) ?? (await openHere(config, options).catch(busyError));
    if (!(found instanceof Error)) return withInterruption(interrupted, found);
    const unreachable = readUnreachable(config.folder);
    if (unreachable) throw new Failure('unavailable', describeUnreachable(unreachable), { cause: found });
    // Start the timeout after the first failed attempt, because on a busy machine the first attempt can take seconds.
    until = Math.min(until, performance.now() + BUSY_TIMEOUT_MS);
    if (performance.now() > until) {
      throw new Failure(
        'unavailable',
        'Another Helmdeck Memory process holds this data folder and does not respond. Wait until that process finishes, or quit it. Then try again.',
        { cause: found },
      );
    }
    if (interrupted.aborted) throw interrupted.reason;
    await wait(BETWEEN_MS);
  }
}

async function connectToProgram({ folder }: Config): Promise<MemoryConnection | undefined> {
  const program = await findOwnerClient(folder);
  if (!program) return undefined;
  return {
    program,
    call: (name, input) => program.call(name, input),
    [Symbol.asyncDispose]: () => Promise.resolve(program[Symbol.dispose]()),
  };
}

/** Whether there is no memory yet, and opening it would create it. Writes nothing. */
export async function isMemoryMissing(
  { folder, database }: Config,
  environment: LoadedSettings['environment'],
): Promise<boolean> {
  // The running program can have another memory than the settings of this command.
  using program = await findOwnerClient(folder);
  if (program) return false;
  if (database) {
    const { containsMemory } = await import('../../core/store/postgres/find-memory.ts');
    return !(await containsMemory(database));
  }
  if (await isFilePresent(folder)) return false;
  // Without a key, opening the memory creates no file.
  const [{ findKeys }, { keySources }] = await Promise.all([
    import('../../core/crypto/find-keys.ts'),
    import('../../core/crypto/keys/key-sources.ts'),
  ]);
  // If the key sources cannot be read, opening the memory says why.
  const keys = await findKeys([], keySources({ environment, folder, desktop: false })('')).catch(() => undefined);
  return keys?.at === 'ok';
}

/** Whether a data folder contains a memory in a file, or the target of an unfinished move. */
export async function isFilePresent(folder: string): Promise<boolean> {
  const [{ MEMORY_FILE }, { MOVING_FILE }] = await Promise.all([
    import('../../core/store/database.ts'),
    import('../../core/upkeep/moved.ts'),
  ]);
  return [MEMORY_FILE, MOVING_FILE].some((name) => existsSync(join(folder, name)));
}

/** Whether an operation needs the owner's packs. Other operations do not load the packs, because each pack starts a process. */
const needsOwnPacks = (name: OperationName): boolean =>
  name === 'packs' || name === 'pack' || operations[name].scope === 'packs:run';

/** Operations that need a key. Without a key, the memory is in RAM, and the stored data would be lost when the command exits. */
const STORING: ReadonlySet<OperationName> = new Set([
  'remember',
  'import',
  'mintToken',
  'connectClient',
  'offerPacks',
  'setCapture',
]);

async function openHere(config: Config, { environment, file, fromFile, version }: ConnectOptions): Promise<MemoryConnection> {
  // Import this module only here, because commands that connect to the running program do not need it.
  const { openMemory } = await import('../roots/open-memory.ts');
  const core = await openMemory(config, { environment, file, fromFile, version, desktop: false });
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
      if (core.store.status().kept === 'memory' && STORING.has(name)) {
        throw new Failure(
          'key_unavailable',
          'There is no key yet, so nothing would be saved. Create a key with: helmdeck-memory key init (without an OS keychain: key init --file)',
        );
      }
      if (needsOwnPacks(name)) await core.loadPacks();
      return core.perform(caller, name, input);
    },
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

/** Returns the cause of the error if another process has locked the memory. Throws every other error. */
function busyError(error: unknown): Error {
  if (isFolderInUse(error)) return error.cause;
  throw error;
}

/** Whether a memory could not be opened because another process has locked the data folder. */
export const isFolderInUse = (error: unknown): error is Failure & { readonly cause: Error } =>
  error instanceof Failure && error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'SQLITE_BUSY';

/** Makes pending calls fail when the user interrupts the command. Disposing the connection still waits for started writes. */
function withInterruption(interrupted: AbortSignal, memory: MemoryConnection): MemoryConnection {
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
