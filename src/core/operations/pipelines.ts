import { type PipelineDetail, shownText } from '../../contract/pipeline.ts';
import type { Definer } from '../authorship.ts';
import type { Caller } from '../caller.ts';
import { inputNames } from '../pipelines/definition.ts';
import type { Kept, PipelineChange } from '../pipelines/definitions.ts';
import { adoptionNeeded } from '../pipelines/pipelines.ts';
import type { Note } from '../store.ts';
import { time } from '../time.ts';
import { noteOf } from './activity.ts';
import { refuseSecretsIn } from './discretion.ts';
import { NOT_KEPT } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';

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
    const stands = await authorship.standing(caller);
    return {
      pipelines: (await all.definitions.all(caller.subject)).map((kept) => {
        const { id, title, description, steps } = kept.definition;
        return {
          id,
          ...(title !== undefined && { title: shownText(title) }),
          ...(description !== undefined && { description: shownText(description) }),
          inputs: inputNames(kept.definition),
          steps: steps.length,
          ...heading(kept, stands),
        };
      }),
    };
  },

  async pipeline(caller, { id }) {
    const kept = await all.definitions.get(caller.subject, id);
    return { ...kept.definition, ...heading(kept, await authorship.standing(caller)) };
  },

  async createPipeline(caller, definition) {
    all.refuseUnrunnable(definition);
    const warning = refuseSecretsIn(secrets, definition);
    const { status, expiresAt } = await all.definitions.put(caller, definition, notesOf(caller));
    const notes = [warning, store.status().kept === 'memory' ? NOT_KEPT : undefined].filter((each) => each !== undefined);
    return {
      id: definition.id,
      status,
      expires_at: time(expiresAt),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  },

  async adoptPipeline(caller, { id, updated_at: seen }) {
    const kept = await all.definitions.adopt(caller, id, seen);
    const { expires_at: _expires, ...rest } = heading(kept, await authorship.standing(caller));
    return { id, ...rest };
  },

  async deletePipeline(caller, { id }) {
    await all.definitions.delete(caller, id, notesOf(caller));
    return { id, deleted: true };
  },

  runPipeline: (caller, input, during) => all.run(caller, input, during),
  finishPipeline: (caller, input, during) => all.finish(caller, input, during),
  pipelineRuns: async (caller, { limit }) => ({ runs: await all.runs(caller, limit) }),
  pipelineRun: (caller, { run_id: runId }) => all.show(caller, runId),
  cancelPipelineRun: (caller, { run_id: runId }) => all.cancel(caller, runId),
});

/** The record of activity names the pipeline. */
export const notesOf =
  (caller: Caller) =>
  (operation: PipelineChange, id: string): Note =>
    noteOf(caller, operation, { target: id });

type Heading = Pick<PipelineDetail, 'client' | 'by_owner' | 'first_written_by' | 'needs_adoption' | 'updated_at' | 'expires_at'>;

function heading(kept: Kept, stands: (author: Definer) => boolean): Heading {
  const { author, wrote, updatedAt, expiresAt } = kept;
  const why = adoptionNeeded(kept, stands);
  return {
    client: author.client,
    ...(author.owner && { by_owner: true }),
    ...(wrote !== undefined && { first_written_by: wrote }),
    ...(why !== undefined && { needs_adoption: why }),
    updated_at: time(updatedAt),
    expires_at: time(expiresAt),
  };
}
