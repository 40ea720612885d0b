import { expect, test } from 'vitest';
import { type MeaningModel, noMeaning } from '../../../src/core/operations/meaning-port.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

/** A memory with a fake model and fake vectors, which record what is asked of them. */
async function opened(choice: MeaningModel['choice'], state?: MeaningModel['state']) {
  const asked: string[] = [];
  const meaning: MeaningModel = {
    ...noMeaning,
    choice,
    installed: true,
    state: state ?? (choice === 'bundled' ? { at: 'ready', source: 'bundled', model: 'small' } : { at: 'off' }),
    choose: (next) => void asked.push(`choose ${next}`),
  };
  const meaningVectors = {
    progress: async () => ({ done: 3, total: 7 }),
    async rebuild() {
      asked.push('rebuild');
    },
  };
  const { as } = await openTestMemory({ meaningModel: meaning, meaningVectors });
  return { asked, call: as(theOwner), agent: as(aCaller()) };
}

test('the owner sees how many facts have a vector, and rebuilds the vectors (R-MEAN-29)', async () => {
  const { asked, call } = await opened('bundled');
  expect(await call('meaning', {})).toEqual({
    state: { at: 'ready', source: 'bundled', model: 'small' },
    choice: 'bundled',
    installed: true,
    facts: { done: 3, total: 7 },
  });
  expect(await call('rebuildMeaning', {})).toMatchObject({ facts: { total: 7 } });
  expect(await call('setMeaning', { choice: 'bundled' })).toMatchObject({ choice: 'bundled' });
  expect(asked).toEqual(['rebuild', 'choose bundled']);
  const { activity } = await call('activity', {});
  expect(activity.map(({ operation }) => operation)).toEqual(['setMeaning', 'rebuildMeaning']);
});

test('while search by meaning is off, nothing can be rebuilt (R-MEAN-26)', async () => {
  const { asked, call } = await opened('off');
  expect(await call('meaning', {})).not.toHaveProperty('facts');
  await expect(call('rebuildMeaning', {})).rejects.toMatchObject({
    code: 'embeddings_unavailable',
    message: expect.stringContaining('meaning on'),
  });
  expect(asked).toEqual([]);
});

test('the vectors of a model that failed are not counted (R-MEAN-29)', async () => {
  const why = 'The model exited unexpectedly.';
  const failed = { at: 'failed', source: 'bundled', trouble: 'crashed', why, remedy: 'Wait.' } as const;
  const { call } = await opened('bundled', failed);
  expect(await call('meaning', {})).toEqual({ state: failed, choice: 'bundled', installed: true });
});

test('agents cannot choose the model (R-MEAN-26)', async () => {
  const { agent } = await opened('bundled');
  for (const name of ['meaning', 'rebuildMeaning'] as const) {
    await expect(agent(name, {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  }
  await expect(agent('setMeaning', { choice: 'off' })).rejects.toMatchObject({ code: 'insufficient_scope' });
});
