import { Failure } from '../../contract/failure.ts';
import type { PipelineDefinition, PipelineRun } from '../../contract/pipeline.ts';
import type { DefinitionAuthor } from '../access/authorship.ts';
import type { Caller } from '../access/caller.ts';
import type { CallContext } from '../operations/call-context.ts';
import type { Author } from '../store/store.ts';
import type { RunRecord } from './pipeline-store.ts';
import { type Reference, valueAt } from './references.ts';

export type RunStep = PipelineRun['steps'][number];

export interface ActiveRun {
  readonly caller: Caller;
  readonly author: DefinitionAuthor;
  /** Author that is stored with the run's record: the caller, together with the pipeline's author. */
  readonly recordAuthor: Author;
  readonly quarantined: RunRecord['quarantined'];
  readonly definition: PipelineDefinition;
  readonly inputs: Map<string, unknown>;
  readonly learned: Readonly<Record<string, string>> | undefined;
  /** The state that callers see. It is updated while the run proceeds. */
  readonly run: Omit<PipelineRun, 'steps'> & { readonly steps: RunStep[] };
  /** The output of each step, because later steps can refer to it. */
  readonly outputs: Map<string, unknown>;
  readonly cancelling: AbortController;
  /** Aborted when the run is cancelled, or when the caller that waits for the run cancels. */
  readonly signal: AbortSignal;
  readonly context: CallContext;
  readonly startedAt: number;
  /** Bytes left for the outputs of later steps. */
  outputBytesLeft: number;
  /** Bytes left in the stored record for the outputs of later steps. */
  shownBytesLeft: number;
}

export interface RunInProgress {
  readonly active: ActiveRun;
  /** Resolves to the final state, or to undefined if the final state could not be recorded. */
  readonly ended: Promise<PipelineRun | undefined>;
}

/** Returns the value that a reference in a step's input refers to. */
export function lookUp({ inputs, outputs }: ActiveRun, step: string, reference: Reference): unknown {
  if (reference.to === 'input') return inputs.get(reference.name);
  const found = valueAt(outputs.get(reference.step), reference.path);
  if (found !== undefined) return found;
  throw new Failure(
    'invalid_input',
    `The step ${step} refers to ${reference.source}, but the output of the earlier step has no such field; check the output schema of its pack.`,
  );
}

/** Returns a copy of the run's state, because the run continues to change. */
export const snapshotOf = ({ run }: ActiveRun): PipelineRun => ({ ...run, steps: run.steps.map((step) => ({ ...step })) });
