import { inputNames } from '../pipelines/definition.ts';
import { time } from '../time.ts';
import { refuseSecretsIn } from './discretion.ts';
import { NOT_KEPT } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type OfPipelines = Pick<
  Memory,
  | 'pipelines'
  | 'pipeline'
  | 'createPipeline'
  | 'deletePipeline'
  | 'runPipeline'
  | 'finishPipeline'
  | 'pipelineRuns'
  | 'pipelineRun'
  | 'cancelPipelineRun'
>;

/** What pipelines can be asked. */
export const pipelines = ({ store, secrets, packs }: MemoryDeps): OfPipelines => ({
  async pipelines(caller) {
    const all = await packs.pipelines.all(caller);
    return {
      pipelines: all.map(({ definition, updatedAt, expiresAt }) => {
        const { id, title, description, steps } = definition;
        return {
          id,
          ...(title !== undefined && { title }),
          ...(description !== undefined && { description }),
          inputs: inputNames(definition),
          steps: steps.length,
          updated_at: time(updatedAt),
          expires_at: time(expiresAt),
        };
      }),
    };
  },

  async pipeline(caller, { id }) {
    const { definition, updatedAt, expiresAt } = await packs.pipelines.get(caller, id);
    return { ...definition, updated_at: time(updatedAt), expires_at: time(expiresAt) };
  },

  async createPipeline(caller, definition) {
    packs.pipelines.refuseUnrunnable(definition);
    const warning = refuseSecretsIn(secrets, definition);
    const { status, entry } = await packs.pipelines.keep(caller, definition);
    const notes = [warning, store.status().kept === 'memory' ? NOT_KEPT : undefined].filter((each) => each !== undefined);
    return {
      id: definition.id,
      status,
      expires_at: time(entry.expiresAt),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    };
  },

  async deletePipeline(caller, { id }) {
    await packs.pipelines.delete(caller, id);
    return { id, deleted: true };
  },

  runPipeline: (caller, input, during) => packs.pipelines.run(caller, input, during),
  finishPipeline: (caller, input, during) => packs.pipelines.finish(caller, input, during),
  pipelineRuns: async (caller, { limit }) => ({ runs: await packs.pipelines.runs(caller, limit) }),
  pipelineRun: (caller, { run_id: runId }) => packs.pipelines.show(caller, runId),
  cancelPipelineRun: (caller, { run_id: runId }) => packs.pipelines.cancel(caller, runId),
});
