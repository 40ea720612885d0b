import { type PipelineDetail, displayText } from '../../contract/pipeline.ts';
import type { DefinitionAuthor } from '../access/authorship.ts';
import type { Caller } from '../access/caller.ts';
import { type AttributedDefinition, type PipelineChange, whyAdoptionNeeded } from '../pipelines/definition-store.ts';
import { DEFINITION_CHANGED, type PipelineRunner } from '../pipelines/pipeline-runner.ts';
import { inputNames } from '../pipelines/validate-definition.ts';
import { selectionOf } from '../store/scope.ts';
import type { ActivityNote } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { noteOf } from './activity.ts';
import type { CallContext } from './call-context.ts';
import { RAM_ONLY_NOTE } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { refuseSecretsIn } from './secret-guard.ts';

type PipelineOperations = Pick<
  Memory,
  | 'pipelines'
  | 'pipeline'
  | 'createPipeline'
  | 'adoptPipeline'
  | 'deletePipeline'
  | 'runPipeline'
  | 'finishPipeline'
  | 'pipelineRuns'
  | 'pipelineRun'
  | 'cancelPipelineRun'
>;

export const pipelines = ({ store, secrets, packs: { pipelines: runner, authorship } }: MemoryDeps): PipelineOperations => ({
  async pipelines(caller) {
    const isRunnable = await authorship.runnableBy(caller);
    return {
      pipelines: (await runner.definitions.all(caller.subject)).map((kept) => {
        const { id, title, description, steps } = kept.definition;
        return {
          id,
          ...(title !== undefined && { title: displayText(title) }),
          ...(description !== undefined && { description: displayText(description) }),
          inputs: inputNames(kept.definition),
          steps: steps.length,
          ...heading(kept, isRunnable),
        };
      }),
    };
  },

  async pipeline(caller, { id }) {
    const isRunnable = await authorship.runnableBy(caller);
    // Read the definition last, because reading fails if the memory was locked in the meantime (R-LOCK-03).
    const kept = await runner.definitions.get(caller.subject, id);
    return { ...kept.definition, ...heading(kept, isRunnable) };
  },

  async createPipeline(caller, definition, context) {
    runner.validate(definition);
    const warning = refuseSecretsIn(secrets, definition);
    const { status, expiresAt } = await runner.definitions.put(caller, definition, notesOf(caller));
    if (status === 'updated') await cancelRuns(runner, caller, definition.id, context);
    const notes = [warning, store.status().kept === 'memory' ? RAM_ONLY_NOTE : undefined].filter((each) => each !== undefined);
    return {
      id: definition.id,
      status,
      expires_at: formatTime(expiresAt),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  },

  async adoptPipeline(caller, { id, updated_at: seen }, context) {
    const kept = await runner.definitions.adopt(caller, id, seen);
    if (kept.updatedAt !== Date.parse(seen)) await cancelRuns(runner, caller, id, context);
    const { expires_at: _expires, ...rest } = heading(kept, await authorship.runnableBy(caller));
    return { id, ...rest };
  },

  async deletePipeline(caller, { id }, context) {
    await runner.definitions.delete(caller, id, notesOf(caller));
    await cancelRuns(runner, caller, id, context);
    await store.forget(caller.subject, selectionOf({ kind: 'pipeline', name: id }));
    return { id, deleted: true };
  },

  runPipeline: (caller, input, context) => runner.startRun(caller, input, context),
  finishPipeline: (caller, input, context) => runner.runToEnd(caller, input, context),
  pipelineRuns: async (caller, { limit }) => ({ runs: await runner.listRuns(caller, limit) }),
  pipelineRun: (caller, { run_id: runId }) => runner.getRun(caller, runId),
  cancelPipelineRun: (caller, { run_id: runId }) => runner.cancelRun(caller, runId),
});

/** Cancels the runs of a pipeline that was changed or deleted, because they must not continue with the old definition. */
const cancelRuns = (runner: PipelineRunner, { subject }: Caller, id: string, context: CallContext): Promise<void> =>
  runner.cancelRuns(subject, ({ pipeline }) => pipeline === id, DEFINITION_CHANGED, context);

/** Returns a function that creates activity rows with the pipeline's id as their `target`. */
export const notesOf =
  (caller: Caller) =>
  (operation: PipelineChange, id: string): ActivityNote =>
    noteOf(caller, operation, { target: id });

type Heading = Pick<PipelineDetail, 'client' | 'by_owner' | 'first_written_by' | 'needs_adoption' | 'updated_at' | 'expires_at'>;

function heading(kept: AttributedDefinition, isRunnable: (author: DefinitionAuthor) => boolean): Heading {
  const { author, originalClient: wrote, updatedAt, expiresAt } = kept;
  const why = whyAdoptionNeeded(kept, isRunnable);
  return {
    client: author.client,
    ...(author.owner && { by_owner: true }),
    ...(wrote !== undefined && { first_written_by: wrote }),
    ...(why !== undefined && { needs_adoption: why }),
    updated_at: formatTime(updatedAt),
    expires_at: formatTime(expiresAt),
  };
}
