import * as z from 'zod';
import { BRIEF } from './limits.ts';
import { flag, inputObject, lazy, notTextError, type SchemaOutput } from './schema.ts';

const sessionShape = `must have 1 to ${BRIEF.sessionCharacters} printable characters; send the id that the client gave its session`;

export const BriefInput = lazy(() =>
  inputObject(
    {
      prompt: z
        .string({ error: notTextError })
        // A long prompt is cut, not refused: a hook sends what the person wrote, and must not fail because of a pasted text.
        .overwrite((text) => text.slice(0, BRIEF.promptCharacters))
        .optional()
        .describe(
          `What the person just said to the agent; only the first ${BRIEF.promptCharacters} characters are used. It is never stored. If absent, the brief is for the start of a session.`,
        ),
      folder: z
        .string({ error: notTextError })
        .max(BRIEF.folderCharacters, { error: `is longer than ${BRIEF.folderCharacters} characters; send the path of a folder` })
        .optional()
        .describe('Path of the root folder of the repository, or of the working folder. Only its last name is used.'),
      session: z
        .string({ error: notTextError })
        .max(BRIEF.sessionCharacters, { error: sessionShape, abort: true })
        .regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u, { error: sessionShape })
        .optional()
        .describe("The client's own id of its session. A fact is told once in a session, unless it changes."),
      repeat: flag()
        .optional()
        .describe(
          "If `true`, the client's context no longer contains what this session was told, for example after a compaction, so it is told again.",
        ),
    },
    {
      title: 'Brief an agent',
      description:
        'Returns what is worth knowing now, in a short text for the context of a model, or an empty text. Without a prompt: preferences and conventions, facts about the project, and what other agents learned lately. With a prompt: only facts that probably matter for it.',
    },
  ),
);
export type BriefInput = SchemaOutput<typeof BriefInput>;

export const BriefOutput = lazy(() =>
  z.object({
    text: z
      .string()
      .describe('Text for the context of the model. The facts in it are quoted data. Empty if there is nothing to say.'),
    keys: z.array(z.string()).describe('Keys of the facts in the text, in their order.'),
  }),
);
export type BriefOutput = SchemaOutput<typeof BriefOutput>;
