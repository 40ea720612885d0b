import { Failure } from '../../contract/failure.ts';
import type { HeldOperation } from '../../contract/inbox.ts';
import type { Caller } from '../access/caller.ts';
import type { CaptureChoices } from '../access/capture-choices.ts';
import type { CallContext } from '../operations/call-context.ts';
import type { Inbox, ProposedFact } from './inbox.ts';
import { isMarked } from './marks.ts';

/** Runs an operation that the owner has accepted through `perform`, which checks it like every other operation. */
export type RunAccepted = (caller: Caller, operation: HeldOperation, input: object, context: CallContext) => Promise<object>;

/** Proposes facts that the owner stated in a prompt to a client. */
export type Propose = (caller: Caller, facts: readonly ProposedFact[]) => Promise<void>;

interface Deps {
  readonly inbox: Inbox;
  readonly captures: CaptureChoices;
}

/**
 * Creates the function that proposes facts, if the owner chose this for the client (R-INBOX-09). Only ordinary text of a client that is
 * not quarantined is stored at once, because nobody reads it before the next agent does.
 */
export const createPropose =
  ({ inbox, captures }: Deps, run: RunAccepted): Propose =>
  async (caller, facts) => {
    const { capture, accept } = facts.length > 0 ? await captures.of(caller.client) : { capture: false, accept: false };
    if (!capture) return;
    for (const fact of facts) {
      if (accept && !caller.quarantined && !isMarked(fact)) await storeAtOnce(run, caller, fact);
      else await inbox.propose(caller, fact);
    }
  };

/** The token of a hook cannot write. The owner's choice grants this write. A refused fact is left out, because no client waits for it. */
async function storeAtOnce(run: RunAccepted, caller: Caller, fact: ProposedFact): Promise<void> {
  try {
    await run({ ...caller, scopes: new Set(['memory:write']) }, 'remember', fact, {});
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
}
