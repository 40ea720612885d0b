import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { EMBEDDING } from './limits.ts';
import type { SidecarState, SidecarFailureCode } from './status.ts';
import { inputObject, fitsBytes, flag, notTextError, Time, wholeNumber } from './text.ts';

const why = lazy(() => z.string().describe('What is the matter.'));
const remedy = lazy(() => z.string().describe('What the owner can do.'));
const model = lazy(() => z.string().describe('The model that embeds.'));

const TROUBLES = {
  not_installed: true,
  unsafe: true,
  too_old: true,
  port_taken: true,
  crashed: true,
  hanging: true,
  broken: true,
  flooding: true,
  wrong_dimension: true,
  pull_failed: true,
  gone: true,
  foreign: true,
} satisfies Record<SidecarFailureCode, true>;

const State = lazy(() =>
  z.discriminatedUnion('at', [
    z.object({ at: z.literal('off').describe('Nobody turned embeddings on; nothing runs.') }),
    z.object({
      at: z.literal('asleep').describe('They are on, and no program of ours runs that would serve them.'),
      remedy: remedy(),
    }),
    z.object({ at: z.literal('starting').describe('Ollama is being started or looked at.') }),
    z.object({
      at: z.literal('unapproved').describe('The owner has not approved this Ollama.'),
      changed: z.boolean().describe('Whether another one was approved before.'),
      remedy: remedy(),
    }),
    z.object({ at: z.literal('no_model').describe('Ollama runs without the model.'), model: model(), remedy: remedy() }),
    z.object({
      at: z.literal('pulling').describe('The model is being fetched.'),
      model: model(),
      done: z.number().min(0).describe('Bytes that are there.'),
      of: z.number().min(0).describe('Bytes in all; 0 while nobody knows.'),
    }),
    z.object({
      at: z.literal('ready').describe('Texts can be embedded.'),
      model: model(),
      whose: z.enum(['own', 'adopted']).describe('own: started by us. adopted: it ran already, and its owner chose it.'),
    }),
    z.object({
      at: z.literal('failed').describe('Texts cannot be embedded.'),
      // The keys are exactly these; the compiler compares above.
      trouble: z.enum(Object.keys(TROUBLES) as [SidecarFailureCode, ...SidecarFailureCode[]]).describe('What it is, as a code.'),
      why: why(),
      remedy: remedy(),
      retry_at: Time().exactOptional().describe('When it is tried again by itself; absent when the owner is needed.'),
    }),
  ]),
);

export const SidecarStatus = lazy(() => State().describe('Where embeddings stand.') satisfies z.ZodType<SidecarState>);

const bounds = `of 1 byte to ${EMBEDDING.bytes / 1024} KiB`;
const notTexts = `must be a text or a list of 1 to ${EMBEDDING.texts} texts, each ${bounds}; send them as JSON strings`;

const text = (error = notTexts) =>
  z.string({ error }).refine((one) => one !== '' && one.isWellFormed() && fitsBytes(one, EMBEDDING.bytes), { error });

/** As OpenAI's clients send it, so that they need no change. */
export const EmbedInput = lazy(() =>
  inputObject(
    {
      model: z.string({ error: notTextError }).describe('The model; it must be the one that is set.'),
      input: z
        .union(
          [text(), z.array(text(), { error: notTexts }).min(1, { error: notTexts }).max(EMBEDDING.texts, { error: notTexts })],
          {
            error: notTexts,
          },
        )
        .describe('What to embed.'),
      encoding_format: z
        .enum(['float', 'base64'], { error: 'must be float or base64; send one of them' })
        .default('float')
        .describe('float: a list of numbers. base64: the same as 32-bit floats, the lowest byte first.'),
      dimensions: wholeNumber(1, 65_536)
        .exactOptional()
        .describe('How many numbers a vector has; what the model does not make is refused.'),
      user: z.string({ error: notTextError }).exactOptional().describe('Taken and left aside.'),
    },
    { title: 'Embed texts', description: 'Turns texts into vectors, on this machine alone.' },
  ),
);
export type EmbedInput = SchemaOutput<typeof EmbedInput>;

const tokens = (what: string) => z.int().min(0).describe(what);

export const EmbedResponse = lazy(() =>
  z.object({
    object: z.literal('list').describe('As the wire wants it.'),
    data: z
      .array(
        z.object({
          object: z.literal('embedding').describe('As the wire wants it.'),
          index: z.int().min(0).describe('Which of the texts.'),
          embedding: z.union([z.array(z.number()), z.string()]).describe('Its vector.'),
        }),
      )
      .describe('A vector for each text, in their order.'),
    model: model(),
    usage: z
      .object({ prompt_tokens: tokens('Tokens of all texts.'), total_tokens: tokens('The same.') })
      .describe('How much was read.'),
  }),
);
export type EmbedResponse = SchemaOutput<typeof EmbedResponse>;

export const EmbeddingsInput = lazy(() =>
  inputObject(
    {},
    {
      title: 'Show embeddings',
      description: 'Where embeddings stand, which Ollama serves them, what their model needs, and the end of its log.',
    },
  ),
);

const Binary = lazy(() =>
  z.object({
    path: z.string().describe('Where it lies.'),
    size: z.int().min(0).exactOptional().describe('Its bytes; absent while nobody may trust them.'),
    sha256: z.string().exactOptional().describe('What it is; absent while nobody may trust it.'),
    approved: z.boolean().describe('Whether the owner approved exactly this one.'),
  }),
);

const room = (what: string) => z.number().min(0).exactOptional().describe(what);

export const EmbeddingsReport = lazy(() =>
  z.object({
    state: SidecarStatus(),
    on: z.boolean().describe('Whether the owner wants embeddings.'),
    adopt: z.boolean().describe('Whether the owner chose the Ollama that runs already.'),
    adoptable: z.string().describe('Where that one is reached.'),
    ollama: Binary().exactOptional().describe('The Ollama that we would start.'),
    version: z.string().exactOptional().describe('Its version, while it runs.'),
    model: z
      .object({
        name: model(),
        disk: room('Bytes that it takes on the disk, where that is known.'),
        memory: room('Bytes that it takes in memory while it works, where that is known.'),
      })
      .describe('What embeds.'),
    free: z.object({ disk: room('Bytes free on the disk.'), memory: room('Bytes free in memory.') }).describe('What there is.'),
    log: z.array(z.string()).describe('The end of what Ollama said, without anything that was embedded.'),
  }),
);
export type EmbeddingsReport = SchemaOutput<typeof EmbeddingsReport>;

export const SetEmbeddingsInput = lazy(() =>
  inputObject(
    {
      on: flag().describe('Whether texts can be embedded.'),
      adopt: flag()
        .exactOptional()
        .describe('true: by the Ollama that runs already. false: by one of our own. As before when absent.'),
    },
    { title: 'Turn embeddings on or off', description: 'Begins or ends embeddings. Turned on again, what failed is tried anew.' },
  ),
);
export type SetEmbeddingsInput = SchemaOutput<typeof SetEmbeddingsInput>;

export const ApproveOllamaInput = lazy(() =>
  inputObject(
    {
      hash: z
        .string({ error: notTextError })
        .regex(/^[0-9a-f]{64}$/, { error: 'must be the SHA-256 that is shown, in 64 hexadecimal digits; copy it' })
        .describe('The SHA-256 of what is approved, as it was shown.'),
    },
    { title: 'Approve Ollama', description: 'Lets the program start exactly this Ollama; another one is asked about again.' },
  ),
);

export const PullModelInput = lazy(() =>
  inputObject(
    {},
    { title: 'Fetch the model', description: 'Begins to fetch the model, or goes on where it was cancelled. Ask how far it is.' },
  ),
);

export const CancelPullInput = lazy(() =>
  inputObject(
    {},
    { title: 'Cancel fetching', description: 'Stops fetching the model. What is there stays, for when it is fetched again.' },
  ),
);

const notSentence = `must be a text ${bounds}; send it as a JSON string`;

export const TestEmbeddingsInput = lazy(() =>
  inputObject(
    {
      one: text(notSentence).describe('A sentence.'),
      other: text(notSentence).describe('Another sentence.'),
    },
    { title: 'Try embeddings', description: 'How near two sentences are to each other.' },
  ),
);

export const EmbeddingsTest = lazy(() =>
  z.object({
    nearness: z.number().describe('From -1 to 1; 1 is the same.'),
    dimensions: z.int().min(1).describe('How many numbers a vector has.'),
    duration_ms: z.int().min(0).describe('How long it took.'),
  }),
);
export type EmbeddingsTest = SchemaOutput<typeof EmbeddingsTest>;
