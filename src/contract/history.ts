import * as z from 'zod';
import { PageCursor } from './fact-fields.ts';
import { DefinedBy, FactVersion } from './fact.ts';
import { PAGE } from './limits.ts';
import { count, flag, inputObject, lazy, notTextError, type SchemaOutput, Time, wholeNumber } from './schema.ts';

export const FactHistory = lazy(() =>
  z.object({
    key: z.string().describe('Key of the fact.'),
    versions: z.array(FactVersion()).describe('Earlier versions, newest first. The current version is not included.'),
  }),
);
export type FactHistory = SchemaOutput<typeof FactHistory>;

/** Undoes all writes of one client in a period. */
export const UndoInput = lazy(() =>
  inputObject(
    {
      client: z
        .string({ error: notTextError })
        .min(1, { error: 'is missing; send the name of the program as shown by activity' })
        .describe('The program whose writes to undo, exactly as shown by activity.'),
      since: Time().describe('Undo its writes at or after this time.'),
      from: PageCursor()
        .optional()
        .describe('Id of the activity row to begin with. Earlier writes in the same millisecond stay.'),
      until: Time().optional().describe('Keep its writes after this time. Absent: undo up to now.'),
      dry_run: flag().default(false).describe('true only counts the changes that would be undone.'),
    },
    {
      title: 'Undo what a client did',
      description:
        'Deletes the facts that a client has created since a given time, and restores the facts that it has changed to their previous version.',
    },
  ),
);
export type UndoInput = SchemaOutput<typeof UndoInput>;

export const UndoReceipt = lazy(() =>
  z.object({
    client: z.string().describe('The program whose writes were undone.'),
    since: Time().describe('Writes at or after this time were undone.'),
    until: Time().exactOptional().describe('Writes after this time were kept. Absent if all later writes were undone.'),
    removed: count('Number of facts that it had created and that are now deleted.'),
    restored: count('Number of facts that it had changed and that are now restored.'),
    skipped: z
      .array(z.string())
      .describe('Keys of facts that were not restored, because their previous version no longer exists.'),
    pipelines: z
      .object({
        removed: z.array(z.string()).describe('Ids of pipelines that it had created and that are now deleted.'),
        restored: z.array(z.string()).describe('Ids of pipelines that it had replaced or adopted and that are now restored.'),
        skipped: z
          .array(z.string())
          .describe(
            'Ids of pipelines that were not changed: their previous version no longer exists, or only their author and the owner may change them.',
          ),
      })
      .exactOptional()
      .describe('Pipelines that were undone. Absent if it had changed none.'),
    dry_run: z.literal(true).exactOptional().describe('Present if this was a dry run, so nothing was changed.'),
  }),
);
export type UndoReceipt = SchemaOutput<typeof UndoReceipt>;

/**
 * The admin operations that are recorded as activity, each with the input field that names its target. The field must be a name or
 * an id, never a value, a key or a token.
 */
export const RECORDED_ACTIONS = {
  adoptPipeline: 'id',
  mintToken: 'name',
  revokeToken: 'id',
  pauseToken: 'id',
  endWindowSession: 'id',
  connectClient: 'client',
  disconnectClient: 'client',
  setCredential: 'name',
  dropCredential: 'name',
  changeSetting: 'name',
  setEmbeddings: undefined,
  approveOllama: undefined,
  pullModel: undefined,
  cancelPull: undefined,
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
      limit: wholeNumber(1, PAGE.max).default(PAGE.default).describe(`Rows per page, at most ${PAGE.max}.`),
      cursor: PageCursor().optional(),
      all: flag().default(false).describe('true lists the activity in all memories. Needs the scope admin.'),
    },
    {
      title: 'Show activity',
      description: 'Lists who wrote or forgot what in this memory, when, and with which program. Newest first.',
    },
  ),
);
export type ActivityInput = SchemaOutput<typeof ActivityInput>;

export const Activity = lazy(() =>
  z.object({
    activity: z
      .array(
        z.object({
          id: z.string().describe('Id of the row. Send it to undo as from.'),
          at: Time().describe('When the operation ran.'),
          operation: z
            .enum([
              'remember',
              'patch',
              'forget',
              'undoForget',
              'undo',
              'import',
              'createPipeline',
              'replacePipeline',
              'deletePipeline',
              ...ACTIONS,
            ])
            .describe('The operation.'),
          client: z.string().describe('The program that called the operation.'),
          defined_by: DefinedBy(),
          namespace: z.string().exactOptional().describe('Subject of the memory. Present if all was true.'),
          key: z.string().exactOptional().describe('Key of the fact. Absent if the operation concerned several facts or none.'),
          target: z
            .string()
            .exactOptional()
            .describe('Name or id of the pipeline, token, client, setting or credential that was changed.'),
          scope: z.string().exactOptional().describe('Scope of a forget that was not a single key.'),
          failed: z.literal(true).exactOptional().describe('Present if the action failed. Part of it can still have been done.'),
          shortened: z
            .object({
              from: Time().describe('When the fact would have expired.'),
              to: Time().describe('When the fact expires since this write.'),
            })
            .exactOptional()
            .describe("Present if the write made another client's fact expire sooner. Undo restores the later time."),
        }),
      )
      .describe('Rows, newest first.'),
    next_cursor: z.string().exactOptional().describe('Send it as cursor to get the next page. Absent on the last page.'),
  }),
);
export type Activity = SchemaOutput<typeof Activity>;
