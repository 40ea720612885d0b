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

const why = lazy(() => z.string().describe('Description of the problem.'));
const remedy = lazy(() => z.string().describe('How the owner can solve the problem.'));
const model = lazy(() => z.string().describe('Name of the embedding model.'));

/** Every failure code, for the schema. `satisfies` makes the compiler reject a missing code. */
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
      at: z.literal('unapproved').describe('The owner has not approved the Ollama binary that was found.'),
      changed: z.boolean().describe('Whether the owner approved a different Ollama binary earlier.'),
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
      done: z.number().min(0).describe('Number of bytes downloaded.'),
      of: z.number().min(0).describe('Size of the download in bytes, or 0 while the size is unknown.'),
    }),
    z.object({
      at: z.literal('ready').describe('Embeddings work.'),
      model: model(),
      whose: z
        .enum(['own', 'adopted', 'bundled'])
        .describe(
          'What computes the vectors. `own`: an Ollama that Helmdeck Memory started. `adopted`: an Ollama that was already running and that the owner chose. `bundled`: the model that is installed with Helmdeck Memory, which is used while Ollama is off.',
        ),
    }),
    z.object({
      at: z.literal('failed').describe('Embeddings do not work.'),
      trouble: z
        .enum(Object.keys(FAILURE_CODES) as [SidecarFailureCode, ...SidecarFailureCode[]])
        .describe('Code of the failure.'),
      why: why(),
      remedy: remedy(),
      retry_at: Time().exactOptional().describe('Time of the next automatic retry. Absent if the owner must solve the problem.'),
    }),
  ]),
);

export const SidecarStatus = lazy(() => State().describe('State of the local embeddings.') satisfies z.ZodType<SidecarState>);

const sizeRange = `of 1 byte to ${EMBEDDING.bytes / 1024} KiB`;
const notTexts = `must be a text or a list of 1 to ${EMBEDDING.texts} texts, each ${sizeRange}; send them as JSON strings`;

const text = (error = notTexts) =>
  z.string({ error }).refine((one) => one !== '' && one.isWellFormed() && fitsBytes(one, EMBEDDING.bytes), { error });

/** The request format of OpenAI's embeddings API, so that programs written for that API work unchanged. */
export const EmbedInput = lazy(() =>
  inputObject(
    {
      model: z.string({ error: notTextError }).describe('Name of the model. It must be the configured embedding model.'),
      input: z
        .union(
          [text(), z.array(text(), { error: notTexts }).min(1, { error: notTexts }).max(EMBEDDING.texts, { error: notTexts })],
          {
            error: notTexts,
          },
        )
        .describe('The text or texts to embed.'),
      encoding_format: z
        .enum(['float', 'base64'], { error: 'must be `float` or `base64`; send one of them' })
        .default('float')
        .describe(
          'Format of the vectors. `float`: a list of numbers. `base64`: the same numbers as little-endian 32-bit floats, in Base64.',
        ),
      dimensions: wholeNumber(1, 65_536)
        .exactOptional()
        .describe('Number of dimensions of each vector. It must be the number that the model produces.'),
      user: z.string({ error: notTextError }).exactOptional().describe('Accepted for compatibility with OpenAI, but ignored.'),
    },
    { title: 'Embed texts', description: 'Computes an embedding vector for each text. The texts do not leave this machine.' },
  ),
);
export type EmbedInput = SchemaOutput<typeof EmbedInput>;

export const EmbedResponse = lazy(() =>
  z.object({
    object: z.literal('list').describe('Always `list`, as in the OpenAI API.'),
    data: z
      .array(
        z.object({
          object: z.literal('embedding').describe('Always `embedding`, as in the OpenAI API.'),
          index: count('Position of the text in the request, starting at 0.'),
          embedding: z
            .union([z.array(z.number()), z.string()])
            .describe('Embedding vector of the text, in the requested format.'),
        }),
      )
      .describe('One vector for each text, in the same order.'),
    model: model(),
    usage: z
      .object({
        prompt_tokens: count('Number of tokens in all texts.'),
        total_tokens: count('The same number as `prompt_tokens`.'),
      })
      .describe('Token usage.'),
  }),
);
export type EmbedResponse = SchemaOutput<typeof EmbedResponse>;

export const EmbeddingsInput = lazy(() =>
  noInput(
    'Show embeddings',
    'Shows the state of embeddings, the Ollama program that computes them, the disk space and RAM that the model needs, and the last lines of the Ollama log.',
  ),
);

const Binary = lazy(() =>
  z.object({
    path: z.string().describe('Path of the file.'),
    size: z.int().min(0).exactOptional().describe('Size in bytes. Absent if the file is not safe to use.'),
    sha256: z.string().exactOptional().describe('SHA-256 of the file. Absent if the file is not safe to use.'),
    approved: z.boolean().describe('Whether the owner has approved this exact file.'),
  }),
);

const bytes = (description: string) => z.number().min(0).exactOptional().describe(description);

export const EmbeddingsReport = lazy(() =>
  z.object({
    state: SidecarStatus(),
    on: z.boolean().describe('Whether embeddings are turned on.'),
    adopt: z.boolean().describe('Whether the owner chose to use an Ollama that was already running.'),
    adoptable: z.string().describe('Address at which Helmdeck Memory looks for an Ollama that is already running.'),
    ollama: Binary().exactOptional().describe('The Ollama binary that Helmdeck Memory would start. Absent if none was found.'),
    version: z.string().exactOptional().describe('Version of the Ollama that is running. Absent if the version is unknown.'),
    model: z
      .object({
        name: model(),
        disk: bytes('Size of the model on disk, in bytes. Absent if unknown.'),
        memory: bytes('RAM that the model needs while it runs, in bytes. Absent if unknown.'),
      })
      .describe('The embedding model.'),
    free: z
      .object({
        disk: bytes('Free disk space, in bytes. Absent if unknown.'),
        memory: bytes('Free RAM, in bytes. Absent if unknown.'),
      })
      .describe('Free disk space and RAM of this machine.'),
    log: z
      .array(z.string())
      .describe('The last lines of the Ollama log. Lines that could contain text sent for embedding are left out.'),
  }),
);
export type EmbeddingsReport = SchemaOutput<typeof EmbeddingsReport>;

export const SetEmbeddingsInput = lazy(() =>
  inputObject(
    {
      on: flag().describe('Whether embeddings are turned on.'),
      adopt: flag()
        .exactOptional()
        .describe(
          'If `true`, uses an Ollama that is already running. If `false`, Helmdeck Memory starts its own Ollama. If absent, the choice is not changed.',
        ),
    },
    {
      title: 'Turn embeddings on or off',
      description: 'Turns embeddings on or off. After a failure, turn embeddings on again to retry.',
    },
  ),
);
export type SetEmbeddingsInput = SchemaOutput<typeof SetEmbeddingsInput>;

export const ApproveOllamaInput = lazy(() =>
  inputObject(
    {
      hash: z
        .string({ error: notTextError })
        .regex(/^[0-9a-f]{64}$/, { error: 'must be a SHA-256 hash of 64 hexadecimal digits; copy it from the embeddings status' })
        .describe('SHA-256 of the binary to approve, copied from the embeddings status.'),
    },
    {
      title: 'Approve Ollama',
      description: 'Allows Helmdeck Memory to start this Ollama binary. If the binary changes, it must be approved again.',
    },
  ),
);

export const PullModelInput = lazy(() =>
  noInput(
    'Download the model',
    'Starts the download of the embedding model, or resumes a cancelled download. The embeddings status shows the progress.',
  ),
);

export const CancelPullInput = lazy(() =>
  noInput('Cancel the download', 'Stops the download of the embedding model. A later download resumes where this one stopped.'),
);

const notSentence = `must be a text ${sizeRange}; send it as a JSON string`;

export const TestEmbeddingsInput = lazy(() =>
  inputObject(
    {
      one: text(notSentence).describe('The first sentence.'),
      other: text(notSentence).describe('The second sentence.'),
    },
    { title: 'Test embeddings', description: 'Embeds two sentences and compares their meaning, to check that embeddings work.' },
  ),
);

export const EmbeddingsTest = lazy(() =>
  z.object({
    nearness: z
      .number()
      .describe('Cosine similarity of the two sentences, from -1 to 1. The value 1 means that they have the same meaning.'),
    dimensions: z.int().min(1).describe('Number of dimensions of each vector.'),
    duration_ms: count('Duration of the test in milliseconds.'),
  }),
);
export type EmbeddingsTest = SchemaOutput<typeof EmbeddingsTest>;
