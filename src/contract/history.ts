import * as z from 'zod';
import { PageCursor } from './fact-fields.ts';
import { DefinedBy, FactVersion } from './fact.ts';
import { PAGE } from './limits.ts';
import { count, flag, inputObject, lazy, notTextError, type SchemaOutput, Time, wholeNumber } from './schema.ts';

export const FactHistory = lazy(() =>
  z.object({
    key: z.string().describe('Key of the fact.'),
    versions: z.array(FactVersion()).describe('Earlier versions, newest first.'),
  }),
);
export type FactHistory = SchemaOutput<typeof FactHistory>;

export const UndoInput = lazy(() =>
  inputObject(
    {
      client: z
        .string({ error: notTextError })
        .min(1, { error: 'is missing; send the name of the program as it appears in the activity list' })
        .describe('Name of the program whose writes are undone, exactly as it appears in the activity list.'),
      since: Time().describe('Start of the period: writes at or after this time are undone.'),
      from: PageCursor()
        .optional()
        .describe('Id of the activity row of the first write to undo. Earlier writes in the same millisecond are not undone.'),
      until: Time()
        .optional()
        .describe('End of the period: writes after this time are not undone. If absent, all writes up to now are undone.'),
      dry_run: flag().default(false).describe('If `true`, only counts the changes that would be undone. Nothing is changed.'),
    },
    {
      title: 'Undo what a client did',
      description:
        'Undoes the writes of one client in a period. Facts that the client created are deleted, and facts that the client changed are restored to their previous version.',
    },
  ),
);
export type UndoInput = SchemaOutput<typeof UndoInput>;

export const UndoReceipt = lazy(() =>
  z.object({
    client: z.string().describe('The program whose writes were undone.'),
    since: Time().describe('Start of the period: writes at or after this time were undone.'),
    until: Time()
      .exactOptional()
      .describe('End of the period: writes after this time were not undone. Absent if all later writes were undone.'),
    removed: count('Number of facts that the program had created and that are now deleted.'),
    restored: count('Number of facts that the program had changed and that are now restored.'),
    skipped: z
      .array(z.string())
      .describe('Keys of facts that were not restored, because their previous version no longer exists.'),
    pipelines: z
      .object({
        removed: z.array(z.string()).describe('Ids of pipelines that the program had created and that are now deleted.'),
        restored: z
          .array(z.string())
          .describe('Ids of pipelines that the program had replaced or adopted and that are now restored.'),
        skipped: z
          .array(z.string())
          .describe(
            'Ids of pipelines that were not restored. Either the previous version no longer exists, or only the author and the owner are allowed to change the pipeline.',
          ),
      })
      .exactOptional()
      .describe('Pipelines whose changes were undone. Absent if the program had not changed any pipeline.'),
    dry_run: z.literal(true).exactOptional().describe('Present if this was a dry run, so nothing was changed.'),
  }),
);
export type UndoReceipt = SchemaOutput<typeof UndoReceipt>;

/**
 * The admin operations that are recorded as activity, each with the input field that is recorded as its target. That field must
 * contain a name or an id, never a fact's value, a key or a token.
 */
export const RECORDED_ACTIONS = {
  adoptPipeline: 'id',
  // An id of the Inbox is not recorded: it is a hash of the item, and every client can read the record.
  acceptInbox: undefined,
  dropInbox: 'client',
  mintToken: 'name',
  revokeToken: 'id',
  pauseToken: 'id',
  endWindowSession: 'id',
  connectClient: 'client',
  disconnectClient: 'client',
  offerPacks: 'client',
  setCapture: 'client',
  setCredential: 'name',
  dropCredential: 'name',
  changeSetting: 'name',
  setEmbeddings: undefined,
  approveOllama: undefined,
  pullModel: undefined,
  cancelPull: undefined,
  setMeaning: 'choice',
  rebuildMeaning: undefined,
  trustClock: undefined,
  lock: undefined,
  unlock: undefined,
  rotateKey: undefined,
  makeRecoveryKey: undefined,
  backup: undefined,
} as const;

export type RecordedAction = keyof typeof RECORDED_ACTIONS;

const ACTIONS = Object.keys(RECORDED_ACTIONS) as RecordedAction[];

export const ActivityInput = lazy(() =>
  inputObject(
    {
      limit: wholeNumber(1, PAGE.max).default(PAGE.default).describe(`Number of rows per page. At most ${PAGE.max}.`),
      cursor: PageCursor().optional(),
      all: flag()
        .default(false)
        .describe('If `true`, lists the activity in the memories of all subjects. Needs the scope `admin`.'),
    },
    {
      title: 'Show activity',
      description: 'Lists the changes to this memory, newest first: the operation, the program that called it, and the time.',
    },
  ),
);
export type ActivityInput = SchemaOutput<typeof ActivityInput>;

export const Activity = lazy(() =>
  z.object({
    activity: z
      .array(
        z.object({
          id: z.string().describe('Id of the row. Send this id as `from` to undo the changes from this row on.'),
          at: Time().describe('Time of the operation.'),
          operation: z
            .enum([
              'remember',
              'patch',
              'forget',
              'undoForget',
              'undo',
              'import',
              'brief',
              'createPipeline',
              'replacePipeline',
              'deletePipeline',
              ...ACTIONS,
            ])
            .describe('Name of the operation.'),
          client: z.string().describe('The program that called the operation.'),
          defined_by: DefinedBy(),
          namespace: z
            .string()
            .exactOptional()
            .describe('Subject whose memory was changed. Present if the request had `all` set to `true`.'),
          key: z
            .string()
            .exactOptional()
            .describe('Key of the fact. Absent if the operation changed several facts, or did not change a fact.'),
          supersedes: z
            .string()
            .exactOptional()
            .describe('Key of the fact that this write moved to the history of the fact with `key`.'),
          target: z
            .string()
            .exactOptional()
            .describe('Name or id of the pipeline, token, client, setting or credential that was changed.'),
          scope: z.string().exactOptional().describe('Scope of a forget operation. Absent if only a single key was forgotten.'),
          keys: z
            .array(z.string())
            .exactOptional()
            .describe('Keys of the facts that a brief put before the agent. Present if the operation is `brief`.'),
          session: z
            .string()
            .exactOptional()
            .describe(
              'Short digest that is equal for all briefs of one session of the client. Absent if the client named no session.',
            ),
          moment: z
            .enum(['start', 'prompt', 'repeat', 'turn'])
            .exactOptional()
            .describe(
              'When the brief was asked for. `start`: at the start of a session. `prompt`: for a prompt. `repeat`: after the context was lost. `turn`: at each turn, by a client that keeps no brief in its context.',
            ),
          failed: z
            .literal(true)
            .exactOptional()
            .describe('Present if the operation failed. Some of its changes may still have been made.'),
          shortened: z
            .object({
              from: Time().describe('Expiry time of the fact before this write.'),
              to: Time().describe('Expiry time of the fact after this write.'),
            })
            .exactOptional()
            .describe("Present if this write made another client's fact expire sooner. Undo restores the later expiry time."),
        }),
      )
      .describe('Rows, newest first.'),
    next_cursor: z
      .string()
      .exactOptional()
      .describe('Send this value as `cursor` to get the next page. Absent on the last page.'),
  }),
);
export type Activity = SchemaOutput<typeof Activity>;
