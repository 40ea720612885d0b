import { type PipelineDetail, displayText } from '../../contract/pipeline.ts';
import type { DefinitionAuthor } from '../access/authorship.ts';
import type { Caller } from '../access/caller.ts';
import type { AttributedDefinition, PipelineChange } from '../pipelines/definition-store.ts';
import { DEFINITION_CHANGED, type PipelineRunner, whyAdoptionNeeded } from '../pipelines/pipeline-runner.ts';
import { inputNames } from '../pipelines/validate-definition.ts';
import type { ActivityNote } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { noteOf } from './activity.ts';
import type { CallContext } from './call-context.ts';
import { RAM_ONLY_NOTE } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { refuseSecretsIn } from './secret-guard.ts';

type OfPipelines = Pick<
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

/** What pipelines can be asked. */
export const pipelines = ({ store, secrets, packs: { pipelines: all, authorship } }: MemoryDeps): OfPipelines => ({
  async pipelines(caller) {
    const stands = await authorship.runnableBy(caller);
    return {
      pipelines: (await all.definitions.all(caller.subject)).map((kept) => {
        const { id, title, description, steps } = kept.definition;
        return {
          id,
          ...(title !== undefined && { title: displayText(title) }),
          ...(description !== undefined && { description: displayText(description) }),
          inputs: inputNames(kept.definition),
          steps: steps.length,
          ...heading(kept, stands),
        };
      }),
    };
  },

  async pipeline(caller, { id }) {
    const kept = await all.definitions.get(caller.subject, id);
    return { ...kept.definition, ...heading(kept, await authorship.runnableBy(caller)) };
  },

  async createPipeline(caller, definition, during) {
    all.validate(definition);
    const warning = refuseSecretsIn(secrets, definition);
    const { status, expiresAt } = await all.definitions.put(caller, definition, notesOf(caller));
    if (status === 'updated') await cancelRuns(all, caller, definition.id, during);
    const notes = [warning, store.status().kept === 'memory' ? RAM_ONLY_NOTE : undefined].filter((each) => each !== undefined);
    return {
      id: definition.id,
      status,
      expires_at: formatTime(expiresAt),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  },

  async adoptPipeline(caller, { id, updated_at: seen }, during) {
    const kept = await all.definitions.adopt(caller, id, seen);
    if (kept.updatedAt !== Date.parse(seen)) await cancelRuns(all, caller, id, during);
    const { expires_at: _expires, ...rest } = heading(kept, await authorship.runnableBy(caller));
    return { id, ...rest };
  },

  async deletePipeline(caller, { id }, during) {
    await all.definitions.delete(caller, id, notesOf(caller));
    await cancelRuns(all, caller, id, during);
    return { id, deleted: true };
  },

  runPipeline: (caller, input, during) => all.startRun(caller, input, during),
  finishPipeline: (caller, input, during) => all.runToEnd(caller, input, during),
  pipelineRuns: async (caller, { limit }) => ({ runs: await all.listRuns(caller, limit) }),
  pipelineRun: (caller, { run_id: runId }) => all.getRun(caller, runId),
  cancelPipelineRun: (caller, { run_id: runId }) => all.cancelRun(caller, runId),
});

/** The runs of a definition that was changed or deleted must not go on with the old one. */
const cancelRuns = (runner: PipelineRunner, { subject }: Caller, id: string, during: CallContext): Promise<void> =>
  runner.cancelRuns(subject, ({ pipeline }) => pipeline === id, DEFINITION_CHANGED, during);

/** The record of activity names the pipeline. */
export const notesOf =
  (caller: Caller) =>
  (operation: PipelineChange, id: string): ActivityNote =>
    noteOf(caller, operation, { target: id });

type Heading = Pick<PipelineDetail, 'client' | 'by_owner' | 'first_written_by' | 'needs_adoption' | 'updated_at' | 'expires_at'>;

function heading(kept: AttributedDefinition, stands: (author: DefinitionAuthor) => boolean): Heading {
  const { author, originalClient: wrote, updatedAt, expiresAt } = kept;
  const why = whyAdoptionNeeded(kept, stands);
  return {
    client: author.client,
    ...(author.owner && { by_owner: true }),
    ...(wrote !== undefined && { first_written_by: wrote }),
    ...(why !== undefined && { needs_adoption: why }),
    updated_at: formatTime(updatedAt),
    expires_at: formatTime(expiresAt),
  };
}
