import * as z from 'zod';
import { PageCursor } from './fact-fields.ts';
import { DefinedBy, FactVersion } from './fact.ts';
import { lazy, type SchemaOutput } from './lazy.ts';
import { PAGE } from './limits.ts';
import { RECORDED_ACTIONS, type RecordedAction } from './recorded-actions.ts';
import { inputObject, flag, notTextError, Time, wholeNumber } from './text.ts';

export const FactHistory = lazy(() =>
  z.object({
    key: z.string().describe('Name of the fact.'),
    versions: z.array(FactVersion()).describe('Its earlier versions, newest first; the present one is not among them.'),
  }),
);
export type FactHistory = SchemaOutput<typeof FactHistory>;

/** The answer to a client that wrote what it should not have: one name and one time say what to take back. */
export const UndoInput = lazy(() =>
  inputObject(
    {
      client: z
        .string({ error: notTextError })
        .min(1, { error: 'is missing; send the name of the program as activity shows it' })
        .describe('The program whose writes to take back, exactly as activity shows it.'),
      since: Time().describe('Take back what it wrote at or after this time.'),
      from: PageCursor()
        .optional()
        .describe('The id of the activity row to begin with: what it wrote before that row in the same moment stays.'),
      until: Time().optional().describe('Leave alone what it wrote after this time; absent, up to now.'),
      dry_run: flag().default(false).describe('true counts what would be taken back and changes nothing.'),
    },
    {
      title: 'Undo what a client did',
      description: 'Forgets the facts a client created since a time, and returns the facts it changed to the version before.',
    },
  ),
);
export type UndoInput = SchemaOutput<typeof UndoInput>;

export const UndoReceipt = lazy(() =>
  z.object({
    client: z.string().describe('The program whose writes were taken back.'),
    since: Time().describe('The time from which on they were.'),
    until: Time().exactOptional().describe('The time up to which they were; absent when it was up to now.'),
    removed: z.int().min(0).describe('Facts it had created, now forgotten.'),
    restored: z.int().min(0).describe('Facts it had changed, now as before.'),
    skipped: z.array(z.string()).describe('Keys left as they are, because the version before is gone.'),
    pipelines: z
      .object({
        removed: z.array(z.string()).describe('Pipelines it had created, now deleted.'),
        restored: z.array(z.string()).describe('Pipelines it had replaced or adopted, now as before.'),
        skipped: z
          .array(z.string())
          .describe(
            'Pipelines left as they are: the version before is gone, or only their author and the owner may change them.',
          ),
      })
      .exactOptional()
      .describe('What became of pipelines; absent when it changed none.'),
    dry_run: z
      .literal(true)
      .exactOptional()
      .describe('Present when nothing was changed because it was only asked how much would be.'),
  }),
);
export type UndoReceipt = SchemaOutput<typeof UndoReceipt>;

const ACTIONS = Object.keys(RECORDED_ACTIONS) as RecordedAction[];

export const ActivityInput = lazy(() =>
  inputObject(
    {
      limit: wholeNumber(1, PAGE.max).default(PAGE.default).describe(`Rows in one page, at most ${PAGE.max}.`),
      cursor: PageCursor().optional(),
      all: flag().default(false).describe('true shows the record of every memory here; only an admin may ask that.'),
    },
    {
      title: 'Show activity',
      description: 'Who wrote or forgot what in this memory, when, and through which program; newest first.',
    },
  ),
);
export type ActivityInput = SchemaOutput<typeof ActivityInput>;

export const Activity = lazy(() =>
  z.object({
    activity: z
      .array(
        z.object({
          id: z.string().describe('Names this row; undo can begin with it.'),
          at: Time().describe('When it happened.'),
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
            .describe('What was done.'),
          client: z.string().describe('The program that did it.'),
          defined_by: DefinedBy(),
          namespace: z.string().exactOptional().describe('In whose memory; present when all were asked for.'),
          key: z.string().exactOptional().describe('The fact it was done to; absent when it was more than one.'),
          target: z.string().exactOptional().describe('The pipeline, token, client, setting or credential that was changed.'),
          scope: z.string().exactOptional().describe('What was forgotten, when it was more than one fact.'),
          failed: z
            .literal(true)
            .exactOptional()
            .describe('Present when the action ended with an error; part of it may have been done.'),
          shortened: z
            .object({
              from: Time().describe('When the fact would have expired.'),
              to: Time().describe('When it expires since this write.'),
            })
            .exactOptional()
            .describe("Present when the write made another client's fact expire sooner; undo restores the later time."),
        }),
      )
      .describe('What was done, newest first.'),
    next_cursor: z.string().exactOptional().describe('Send it as cursor for the next page; absent on the last.'),
  }),
);
export type Activity = SchemaOutput<typeof Activity>;
