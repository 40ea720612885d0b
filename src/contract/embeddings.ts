import * as z from 'zod';
import { EMBEDDING } from './limits.ts';
import {
  count,
  fitsBytes,
  flag,
  inputObject,
  lazy,
  noInput,
  notTextError,
  type SchemaOutput,
  Time,
  wholeNumber,
} from './schema.ts';
import type { SidecarState, SidecarFailureCode } from './status.ts';

const why = lazy(() => z.string().describe('The problem.'));
const remedy = lazy(() => z.string().describe('How the owner can fix it.'));
const model = lazy(() => z.string().describe('Name of the embedding model.'));

/** Complete by type, so that a new code cannot be forgotten here. */
const FAILURE_CODES = {
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
    z.object({ at: z.literal('off').describe('Embeddings are turned off.') }),
    z.object({
      at: z.literal('asleep').describe('Embeddings are turned on, but Helmdeck Memory is not running.'),
      remedy: remedy(),
    }),
    z.object({ at: z.literal('starting').describe('Ollama is being started or checked.') }),
    z.object({
      at: z.literal('unapproved').describe('The owner has not approved this Ollama binary.'),
      changed: z.boolean().describe('Whether the owner had approved another binary before.'),
      remedy: remedy(),
    }),
    z.object({
      at: z.literal('no_model').describe('Ollama is running, but the model is not installed.'),
      model: model(),
      remedy: remedy(),
    }),
    z.object({
      at: z.literal('pulling').describe('The model is being downloaded.'),
      model: model(),
      done: z.number().min(0).describe('Bytes downloaded.'),
      of: z.number().min(0).describe('Total bytes, or 0 while unknown.'),
    }),
    z.object({
      at: z.literal('ready').describe('Texts can be embedded.'),
      model: model(),
      whose: z
        .enum(['own', 'adopted'])
        .describe('own: Helmdeck Memory started this Ollama. adopted: it was already running, and the owner chose it.'),
    }),
    z.object({
      at: z.literal('failed').describe('Texts cannot be embedded.'),
      trouble: z
        .enum(Object.keys(FAILURE_CODES) as [SidecarFailureCode, ...SidecarFailureCode[]])
        .describe('Code of the failure.'),
      why: why(),
      remedy: remedy(),
      retry_at: Time().exactOptional().describe('When the program retries. Absent if the owner must act.'),
    }),
  ]),
);

export const SidecarStatus = lazy(() => State().describe('State of embeddings.') satisfies z.ZodType<SidecarState>);

const bounds = `of 1 byte to ${EMBEDDING.bytes / 1024} KiB`;
const notTexts = `must be a text or a list of 1 to ${EMBEDDING.texts} texts, each ${bounds}; send them as JSON strings`;

const text = (error = notTexts) =>
  z.string({ error }).refine((one) => one !== '' && one.isWellFormed() && fitsBytes(one, EMBEDDING.bytes), { error });

/** The request format of OpenAI's API, so that its clients need no change. */
export const EmbedInput = lazy(() =>
  inputObject(
    {
      model: z.string({ error: notTextError }).describe('The model; it must be the configured one.'),
      input: z
        .union(
          [text(), z.array(text(), { error: notTexts }).min(1, { error: notTexts }).max(EMBEDDING.texts, { error: notTexts })],
          {
            error: notTexts,
          },
        )
        .describe('The text or texts to embed.'),
      encoding_format: z
        .enum(['float', 'base64'], { error: 'must be float or base64; send one of them' })
        .default('float')
        .describe('float: a list of numbers. base64: the same numbers as little-endian 32-bit floats.'),
      dimensions: wholeNumber(1, 65_536)
        .exactOptional()
        .describe('Length of the vectors. It must be the length that the model produces.'),
      user: z.string({ error: notTextError }).exactOptional().describe('Accepted and ignored.'),
    },
    { title: 'Embed texts', description: 'Turns texts into vectors. The texts do not leave this machine.' },
  ),
);
export type EmbedInput = SchemaOutput<typeof EmbedInput>;

export const EmbedResponse = lazy(() =>
  z.object({
    object: z.literal('list').describe('Always list, as in the OpenAI API.'),
    data: z
      .array(
        z.object({
          object: z.literal('embedding').describe('Always embedding, as in the OpenAI API.'),
          index: count('Index of the text in the request.'),
          embedding: z.union([z.array(z.number()), z.string()]).describe('Vector of the text.'),
        }),
      )
      .describe('One vector for each text, in the same order.'),
    model: model(),
    usage: z
      .object({ prompt_tokens: count('Number of tokens in all texts.'), total_tokens: count('The same number.') })
      .describe('Token usage.'),
  }),
);
export type EmbedResponse = SchemaOutput<typeof EmbedResponse>;

export const EmbeddingsInput = lazy(() =>
  noInput(
    'Show embeddings',
    'Shows the state of embeddings, the Ollama that provides them, the resources of the model, and the end of the log of Ollama.',
  ),
);

const Binary = lazy(() =>
  z.object({
    path: z.string().describe('Path of the binary.'),
    size: z.int().min(0).exactOptional().describe('Size in bytes. Absent if the file is not safe to use.'),
    sha256: z.string().exactOptional().describe('SHA-256 of the file. Absent if the file is not safe to use.'),
    approved: z.boolean().describe('Whether the owner approved this exact file.'),
  }),
);

const bytes = (description: string) => z.number().min(0).exactOptional().describe(description);

export const EmbeddingsReport = lazy(() =>
  z.object({
    state: SidecarStatus(),
    on: z.boolean().describe('Whether embeddings are turned on.'),
    adopt: z.boolean().describe('Whether the owner chose an Ollama that was already running.'),
    adoptable: z.string().describe('Address of an Ollama that is already running.'),
    ollama: Binary().exactOptional().describe('The Ollama binary that the program would start.'),
    version: z.string().exactOptional().describe('Version of the running Ollama.'),
    model: z
      .object({
        name: model(),
        disk: bytes('Size of the model on disk in bytes, if known.'),
        memory: bytes('Memory that the model needs while it runs, in bytes, if known.'),
      })
      .describe('The embedding model.'),
    free: z
      .object({ disk: bytes('Free bytes on the disk.'), memory: bytes('Free bytes in RAM.') })
      .describe('Free resources of this machine.'),
    log: z.array(z.string()).describe('The last lines of the log of Ollama, without any embedded text.'),
  }),
);
export type EmbeddingsReport = SchemaOutput<typeof EmbeddingsReport>;

export const SetEmbeddingsInput = lazy(() =>
  inputObject(
    {
      on: flag().describe('true turns embeddings on, false turns them off.'),
      adopt: flag().exactOptional().describe('true: use an Ollama that is already running. false: start one. Absent: no change.'),
    },
    {
      title: 'Turn embeddings on or off',
      description: 'Turns embeddings on or off. Turning them on again retries after a failure.',
    },
  ),
);
export type SetEmbeddingsInput = SchemaOutput<typeof SetEmbeddingsInput>;

export const ApproveOllamaInput = lazy(() =>
  inputObject(
    {
      hash: z
        .string({ error: notTextError })
        .regex(/^[0-9a-f]{64}$/, { error: 'must be the SHA-256 that was shown, in 64 hexadecimal digits; copy it' })
        .describe('SHA-256 of the approved binary, as shown.'),
    },
    {
      title: 'Approve Ollama',
      description: 'Allows the program to start this Ollama binary. A changed binary needs approval again.',
    },
  ),
);

export const PullModelInput = lazy(() =>
  noInput(
    'Download the model',
    'Starts to download the model, or resumes a cancelled download. Show embeddings to see its progress.',
  ),
);

export const CancelPullInput = lazy(() =>
  noInput('Cancel the download', 'Stops the download of the model. A later download resumes at the same point.'),
);

const notSentence = `must be a text ${bounds}; send it as a JSON string`;

export const TestEmbeddingsInput = lazy(() =>
  inputObject(
    {
      one: text(notSentence).describe('The first sentence.'),
      other: text(notSentence).describe('The second sentence.'),
    },
    { title: 'Test embeddings', description: 'Compares the meaning of two sentences.' },
  ),
);

export const EmbeddingsTest = lazy(() =>
  z.object({
    nearness: z.number().describe('Cosine similarity, from -1 to 1. 1 means the same meaning.'),
    dimensions: z.int().min(1).describe('Length of the vectors.'),
    duration_ms: count('Duration in milliseconds.'),
  }),
);
export type EmbeddingsTest = SchemaOutput<typeof EmbeddingsTest>;
