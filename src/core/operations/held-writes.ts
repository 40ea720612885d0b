import { spellScope } from '../../contract/forget.ts';
import type { HeldOperation, HeldReceipt } from '../../contract/inbox.ts';
import { INBOX } from '../../contract/limits.ts';
import type { OperationInput } from '../../contract/operations.ts';
import type { Caller } from '../access/caller.ts';
import { formatTime } from '../time/format-time.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { refuseSecrets, refuseSecretsIn } from './secret-guard.ts';

export type Hold = (caller: Caller, operation: HeldOperation, input: object) => Promise<object>;

/** The first sentence must tell a model what happened, because a model that misunderstands the answer repeats the request. */
const NOTE = `This request waits for the approval of the owner of this memory, and is not done yet. Do not send it again. Until the owner accepts it, no client can read it. It is deleted after ${INBOX.ttl / 86_400} days.`;

/**
 * Creates the function that stores the write of a quarantined client in the Inbox, instead of running it (R-INBOX-01). The input
 * was validated. It is checked here as the operation would check it, so that the owner is shown no write that would be refused.
 */
export function createHold(
  memory: Memory,
  { inbox, secrets, store, packs }: Pick<MemoryDeps, 'inbox' | 'secrets' | 'store' | 'packs'>,
): Hold {
  const add = async (
    caller: Caller,
    operation: HeldOperation,
    input: object,
    more: Pick<HeldReceipt, 'lines' | 'errors'> = {},
  ): Promise<HeldReceipt> => {
    const write = { operation, input: { ...input }, source: 'quarantine' } as const;
    const { id, expiresAt } = await inbox.add(caller, write);
    return { status: 'held', note: NOTE, id, operation, expires_at: formatTime(expiresAt), ...more };
  };

  const holders: { readonly [Name in HeldOperation]: (caller: Caller, input: OperationInput<Name>) => Promise<object> } = {
    async remember(caller, { similar: _similar, ...fact }) {
      const { key, value, category, tags } = fact;
      refuseSecrets(secrets, { value, key, tags, category });
      return add(caller, 'remember', fact);
    },
    async patch(caller, change) {
      const { key, category, tags } = change;
      refuseSecrets(secrets, { ...(tags && { tags }), ...(category !== undefined && { category }) });
      // Without the fact, the operation fails. The client learns this also without quarantine.
      await memory.recall(caller, { key }, {});
      return add(caller, 'patch', change);
    },
    forget: async (caller, { scope }) => add(caller, 'forget', { scope: spellScope(scope) }),
    // Without an end, the acceptance would also undo what the client writes in the meantime.
    undo: async (caller, { dry_run: _dry, until = formatTime(store.now()), ...range }) =>
      add(caller, 'undo', { ...range, until }),
    async import(caller, input) {
      const { dry_run: _dry, ...checked } = await memory.import(caller, { ...input, dry_run: true }, {});
      const { errors } = checked;
      const rejected = new Set(errors.map(({ line }) => line));
      const lines = input.lines.filter((line, index) => line.trim() !== '' && !rejected.has(input.first_line + index));
      // Nothing would be written, so nothing waits. The receipt says why.
      if (lines.length === checked.dropped) return checked;
      return add(caller, 'import', { lines }, { lines: lines.length, ...(errors.length > 0 && { errors }) });
    },
    async createPipeline(caller, definition) {
      packs.pipelines.validate(definition);
      refuseSecretsIn(secrets, definition);
      return add(caller, 'createPipeline', definition);
    },
    async deletePipeline(caller, { id }) {
      await packs.pipelines.definitions.get(caller.subject, id);
      return add(caller, 'deletePipeline', { id });
    },
  };

  // The table pairs each name with its input. The compiler cannot follow that pairing through a union.
  return (caller, operation, input) => holders[operation](caller, input as never);
}
