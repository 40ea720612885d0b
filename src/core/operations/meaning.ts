import { Failure } from '../../contract/failure.ts';
import type { MeaningReport } from '../../contract/meaning.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type MeaningOperations = Pick<Memory, 'meaning' | 'setMeaning' | 'rebuildMeaning'>;

/** The owner's choice of the model of search by meaning (R-MEAN-26). */
export const meaning = ({ meaning: model, meaningVectors: vectors, settings }: MemoryDeps): MeaningOperations => {
  const report = async (): Promise<MeaningReport> => {
    const { state, choice, installed } = model;
    // While the model is unavailable, its vectors are unknown. While the memory is locked, its facts cannot be counted.
    const facts = state.at === 'ready' ? await vectors?.progress().catch(() => undefined) : undefined;
    return { state, choice, installed, ...(facts && { facts }) };
  };
  return {
    meaning: report,

    async setMeaning(_caller, { choice }) {
      // Choosing the same model again retries after a failure, even if the environment sets the choice.
      if (choice === model.choice) model.choose(choice);
      else settings.change('HELMDECK_MEANING', choice);
      return report();
    },

    async rebuildMeaning() {
      if (!vectors || model.choice === 'off') {
        throw new Failure(
          'embeddings_unavailable',
          'Search by meaning is off, so there are no vectors. Turn it on with: helmdeck-memory meaning on',
        );
      }
      await vectors.rebuild();
      return report();
    },
  };
};
