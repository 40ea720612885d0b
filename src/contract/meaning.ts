import * as z from 'zod';
import { count, inputObject, lazy, noInput, type SchemaOutput, Time } from './schema.ts';
import type { MeaningChoice, MeaningFailureCode, MeaningState } from './status.ts';

/** Every choice and failure code, for the schemas. `satisfies` makes the compiler reject a missing one. */
const CHOICES = { bundled: true, ollama: true, off: true } satisfies Record<MeaningChoice, true>;
const FAILURE_CODES = {
  not_installed: true,
  damaged: true,
  crashed: true,
  hanging: true,
  ollama: true,
} satisfies Record<MeaningFailureCode, true>;

const choices = Object.keys(CHOICES) as [MeaningChoice, ...MeaningChoice[]];

const SOURCE = '`bundled`: the model that is installed with Helmdeck Memory. `ollama`: a model that Ollama serves.';

const source = () => z.enum(['bundled', 'ollama']).describe(SOURCE);

const State = lazy(() =>
  z.discriminatedUnion('at', [
    z.object({ at: z.literal('off').describe('Search by meaning is turned off. No model is loaded.') }),
    z.object({
      at: z.literal('starting').describe('Ollama is starting or downloading the model.'),
      source: z.literal('ollama').describe(SOURCE),
    }),
    z.object({
      at: z.literal('ready').describe('The model is available. It is loaded when it is needed.'),
      source: source(),
      model: z.string().describe('Name of the model.'),
    }),
    z.object({
      at: z.literal('failed').describe('The model is unavailable, so search works by words only.'),
      source: source(),
      trouble: z
        .enum(Object.keys(FAILURE_CODES) as [MeaningFailureCode, ...MeaningFailureCode[]])
        .describe('Code of the failure.'),
      why: z.string().describe('Description of the problem.'),
      remedy: z.string().describe('How the owner can solve the problem.'),
      retry_at: Time().exactOptional().describe('Time of the next automatic retry. Absent if the owner must solve the problem.'),
    }),
  ]),
);

export const MeaningStatus = lazy(() => State().describe('State of search by meaning.') satisfies z.ZodType<MeaningState>);

export const MeaningInput = lazy(() =>
  noInput('Show search by meaning', 'Shows which model search by meaning uses, and whether the model is available.'),
);

export const MeaningReport = lazy(() =>
  z.object({
    state: MeaningStatus(),
    choice: z.enum(choices).describe('The chosen model, or `off`.'),
    installed: z.boolean().describe('Whether the bundled model is installed.'),
    facts: z
      .object({
        done: count('Number of facts that have a vector of this model.'),
        total: count('Number of all facts.'),
      })
      .exactOptional()
      .describe(
        'Progress of the background work that makes the vectors of facts. Absent while the model is unavailable or the memory is locked.',
      ),
  }),
);
export type MeaningReport = SchemaOutput<typeof MeaningReport>;

export const SetMeaningInput = lazy(() =>
  inputObject(
    {
      choice: z
        .enum(choices, { error: 'must be `bundled`, `ollama` or `off`; send one of them' })
        .describe(
          '`bundled`: the model that is installed with Helmdeck Memory. `ollama`: the model that Ollama serves, which receives every fact. `off`: search by words only.',
        ),
    },
    {
      title: 'Choose the model of search by meaning',
      description:
        'Turns search by meaning on or off, or changes its model. After a failure, choose the same model again to retry. The choice is stored in the configuration file and takes effect immediately.',
    },
  ),
);
export type SetMeaningInput = SchemaOutput<typeof SetMeaningInput>;

export const RebuildMeaningInput = lazy(() =>
  noInput(
    'Rebuild the vectors of search by meaning',
    'Deletes all vectors and makes them again in the background. Search works by words meanwhile.',
  ),
);
