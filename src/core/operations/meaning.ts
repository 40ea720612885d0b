import type { MeaningReport } from '../../contract/meaning.ts';
import type { MeaningModel } from './meaning-port.ts';
import type { Memory, MemoryDeps } from './memory.ts';

/** The owner's choice of the model of search by meaning (R-MEAN-26). */
export const meaning = ({ meaning: model, settings }: MemoryDeps): Pick<Memory, 'meaning' | 'setMeaning'> => ({
  meaning: async () => reportOf(model),

  async setMeaning(_caller, { choice }) {
    // Choosing the same model again retries after a failure, even if the environment sets the choice.
    if (choice === model.choice) model.choose(choice);
    else settings.change('HELMDECK_MEANING', choice);
    return reportOf(model);
  },
});

const reportOf = ({ state, choice, installed }: MeaningModel): MeaningReport => ({ state, choice, installed });
