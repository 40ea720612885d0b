import { withCliCommands } from '../../contract/cli-command.ts';
import { asFailure, Failure, type FailureCode } from '../../contract/failure.ts';
import { RECORDED_ACTIONS, type RecordedAction } from '../../contract/history.ts';
import { isHeldOperation } from '../../contract/inbox.ts';
import {
  effectOf,
  isOperation,
  needsConsent,
  type OperationName,
  operations,
  type OperationOutput,
} from '../../contract/operations.ts';
import { explainIssue } from '../../contract/schema.ts';
import { type Caller, hasScope } from '../access/caller.ts';
import type { WriteLimit } from '../access/write-limit.ts';
import type { MemoryStore } from '../store/store.ts';
import { noteOf } from './activity.ts';
import { askConsent, type ConsentRequest, type CallContext } from './call-context.ts';
import type { FairScheduler } from './fair-scheduler.ts';
import type { Hold } from './held-writes.ts';
import type { Memory } from './memory.ts';

/** Runs an operation by its name. Every error that it throws is a `Failure`. */
export interface Perform {
  <Name extends OperationName>(caller: Caller, name: Name, input: unknown, during?: CallContext): Promise<OperationOutput<Name>>;
  (caller: Caller, name: string, input: unknown, during?: CallContext): Promise<unknown>;
}

interface Deps {
  readonly limit: WriteLimit | undefined;
  readonly scheduler: FairScheduler;
  readonly store: Pick<MemoryStore, 'recordActivity'>;
  readonly hold: Hold;
}

/**
 * Creates the function through which REST, MCP, the command line and the window run all operations. These interfaces pass the
 * authenticated caller and the unvalidated input.
 */
export function createPerform(memory: Memory, { limit, scheduler, store, hold }: Deps): Perform {
  return async (caller: Caller, name: string, input: unknown, during: CallContext = {}): Promise<never> => {
    if (!isOperation(name)) throw new Failure('not_found', 'There is no such operation; look up its name in the documentation.');
    const { scope, input: schema } = operations[name];
    if (!hasScope(caller, scope)) {
      throw new Failure(
        'insufficient_scope',
        `This operation needs a token with the scope ${scope}; ask the owner of this memory for one.`,
      );
    }
    const turn = scheduler.acquire(caller.subject, during.requester);
    if (turn) await turn;
    // If a pipeline or pack was cancelled while its call waited, the call must not write any more.
    if (during.signal?.aborted && during.signal.reason instanceof Failure) throw during.signal.reason;
    const parsed = schema().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, input), { cause: parsed.error });
    try {
      if (during.consent) {
        const effect = effectOf(name, parsed.data as never);
        // The operations table pairs each name with its input type. The compiler cannot follow that pairing through a union.
        if (needsConsent(effect)) await askConsent(during, { caller, name, input: parsed.data, effect } as ConsentRequest);
      }
      if (scope === 'memory:write' && !during.isAccepted) limit?.count(caller, writesOf(parsed.data));
      if (caller.quarantined && isHeldOperation(name) && caller.session === undefined && writesOf(parsed.data) > 0) {
        return (await hold(caller, name, parsed.data)) as never;
      }
      const action = isRecordedAction(name) && !isDryRun(parsed.data) ? name : undefined;
      // The operations table pairs each schema with its method. The compiler cannot follow that pairing through a union.
      const run = async (): Promise<never> => (await memory[name](caller, parsed.data as never, during)) as never;
      const output = action ? await runRecorded(store, caller, { action, input: parsed.data }, run) : await run();
      return WITH_COMMANDS.has(name) ? withCliCommands(output) : output;
    } catch (error) {
      throw asFailure(error);
    }
  };
}

/** Codes of failures that occur before an action changes anything. */
const REFUSALS: ReadonlySet<FailureCode> = new Set([
  'invalid_input',
  'not_found',
  'insufficient_scope',
  'declined',
  'key_unavailable',
]);

/** Runs an administrative action and adds it to the activity record, even if the action fails (R-VIEW-07). */
async function runRecorded<T>(
  store: Pick<MemoryStore, 'recordActivity'>,
  caller: Caller,
  { action, input }: { readonly action: RecordedAction; readonly input: object },
  run: () => Promise<T>,
): Promise<T> {
  const target: unknown = Object.entries(input).find(([field]) => field === RECORDED_ACTIONS[action])?.[1];
  // Ignore errors of this write: the action was performed, so it must not be reported as failed.
  const record = (outcome: { failed?: true } = {}): Promise<void> =>
    store
      .recordActivity(caller.subject, noteOf(caller, action, { ...(typeof target === 'string' && { target }), ...outcome }))
      .catch(() => undefined);
  // Record a lock before it happens, because a locked memory has no key to encrypt the row with.
  if (action === 'lock') {
    await record();
    return run();
  }
  try {
    const output = await run();
    await record();
    return output;
  } catch (error) {
    if (!REFUSALS.has(asFailure(error).code)) await record({ failed: true });
    throw error;
  }
}

/** @internal */
export const isRecordedAction = (operation: string): operation is RecordedAction => Object.hasOwn(RECORDED_ACTIONS, operation);

const isDryRun = (input: object): boolean => 'dry_run' in input && input.dry_run === true;

/** Operations whose results contain commands that the owner can run. */
const WITH_COMMANDS: ReadonlySet<OperationName> = new Set<OperationName>([
  'status',
  'lock',
  'unlock',
  'rotateKey',
  'trustClock',
  'clients',
  'embeddings',
  'setEmbeddings',
  'approveOllama',
  'pullModel',
  'cancelPull',
  'testEmbeddings',
  'meaning',
  'setMeaning',
  'rebuildMeaning',
]);

/** Returns the number of writes that count towards the write limit: one for each line of an import, and none for a dry run. */
function writesOf(input: object): number {
  if (isDryRun(input)) return 0;
  return 'lines' in input && Array.isArray(input.lines) ? input.lines.length : 1;
}
