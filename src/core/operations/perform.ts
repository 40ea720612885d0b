import { withCliCommands } from '../../contract/cli-command.ts';
import { needsConsent } from '../../contract/effect.ts';
import { explainIssue } from '../../contract/explain.ts';
import { asFailure, Failure, type FailureCode } from '../../contract/failure.ts';
import { effectOf, isOperation, type OperationName, operations, type OperationOutput } from '../../contract/operations.ts';
import { isRecordedAction, RECORDED_ACTIONS, type RecordedAction } from '../../contract/recorded-actions.ts';
import { type Caller, hasScope } from '../access/caller.ts';
import type { WriteLimit } from '../access/write-limit.ts';
import type { MemoryStore } from '../store/store.ts';
import { noteOf } from './activity.ts';
import { askConsent, type ConsentRequest, type CallContext } from './call-context.ts';
import type { FairScheduler } from './fair-scheduler.ts';
import type { Memory } from './memory.ts';

/** Runs an operation by its name. Whatever goes wrong is a `Failure`. */
export interface Perform {
  <Name extends OperationName>(caller: Caller, name: Name, input: unknown, during?: CallContext): Promise<OperationOutput<Name>>;
  (caller: Caller, name: string, input: unknown, during?: CallContext): Promise<unknown>;
}

/** The one door: every surface calls it, with the caller it made out itself and the input as it came. */
export function createPerform(
  memory: Memory,
  limit: WriteLimit,
  turns: FairScheduler,
  store: Pick<MemoryStore, 'recordActivity'>,
): Perform {
  return async (caller: Caller, name: string, input: unknown, during: CallContext = {}): Promise<never> => {
    if (!isOperation(name))
      throw new Failure('not_found', 'There is no such operation; compare its name with the documentation.');
    const { scope, input: schema } = operations[name];
    if (!hasScope(caller, scope)) {
      throw new Failure(
        'insufficient_scope',
        `This needs a token with the scope ${scope}; ask the owner of this memory for one.`,
      );
    }
    const turn = turns.acquire(caller.subject, during.requester);
    if (turn) await turn;
    const parsed = schema().safeParse(input);
    if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, input), { cause: parsed.error });
    try {
      if (during.consent) {
        const effect = effectOf(name, parsed.data as never);
        // The table pairs the name with its input; the compiler cannot follow the pairing through a union.
        if (needsConsent(effect)) await askConsent(during, { caller, name, input: parsed.data, effect } as ConsentRequest);
      }
      if (scope === 'memory:write') limit.count(caller, writesOf(parsed.data));
      const action = isRecordedAction(name) && !isDryRun(parsed.data) ? name : undefined;
      // The table pairs each schema with its method; the compiler cannot follow the pairing through a union.
      const run = async (): Promise<never> => (await memory[name](caller, parsed.data as never, during)) as never;
      const answer = action ? await runRecorded(store, caller, { action, input: parsed.data }, run) : await run();
      return SUGGESTING.has(name) ? withCliCommands(answer) : answer;
    } catch (error) {
      throw asFailure(error);
    }
  };
}

/** With these an action was refused before it changed anything. */
const REFUSALS: ReadonlySet<FailureCode> = new Set([
  'invalid_input',
  'not_found',
  'insufficient_scope',
  'declined',
  'key_unavailable',
]);

/** Runs an administrator's action and leaves a row in the activity record, also when the action failed part way (R-VIEW-07). */
async function runRecorded<T>(
  store: Pick<MemoryStore, 'recordActivity'>,
  caller: Caller,
  { action, input }: { readonly action: RecordedAction; readonly input: object },
  run: () => Promise<T>,
): Promise<T> {
  const target: unknown = Object.entries(input).find(([field]) => field === RECORDED_ACTIONS[action])?.[1];
  // The action is done by then: its caller must not be told that it failed because its row could not be written.
  const record = (outcome: { failed?: true } = {}): Promise<void> =>
    store
      .recordActivity(caller.subject, noteOf(caller, action, { ...(typeof target === 'string' && { target }), ...outcome }))
      .catch(() => undefined);
  // A locked memory cannot seal a row until it is unlocked, so the row of a lock is written first.
  if (action === 'lock') {
    await record();
    return run();
  }
  try {
    const answer = await run();
    await record();
    return answer;
  } catch (error) {
    if (!REFUSALS.has(asFailure(error).code)) await record({ failed: true });
    throw error;
  }
}

const isDryRun = (input: object): boolean => 'dry_run' in input && input.dry_run === true;

/** Their answers say what to do, and name commands. */
const SUGGESTING: ReadonlySet<OperationName> = new Set<OperationName>([
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
]);

/** An import is as many writes as it has lines; whoever only asks what would happen writes nothing. */
function writesOf(input: object): number {
  if (isDryRun(input)) return 0;
  return 'lines' in input && Array.isArray(input.lines) ? input.lines.length : 1;
}
