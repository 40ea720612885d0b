import type { MeaningReport } from '../../../contract/meaning.ts';
import type { MeaningState } from '../../../contract/status.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns } from '../layout.ts';

export const meaningOn = command({
  name: 'meaning on',
  description: 'Turns on search by meaning. After a failure, tries again.',
  options: { ollama: { description: 'Uses the model that Ollama serves, instead of the bundled model.' } },
  details: [
    'The bundled model needs no download and no other program. Ollama must be on: see `helmdeck-memory embeddings on`. docs/meaning.md compares both.',
  ],
  examples: ['meaning on', 'meaning on --ollama'],
  async run({ options: { ollama } }, context) {
    const report = await context.call('setMeaning', { choice: ollama ? 'ollama' : 'bundled' });
    await context.printResult(report, () => meaningLines(report));
    return exitCode(report.state);
  },
});

export const meaningOff = command({
  name: 'meaning off',
  description: 'Turns off search by meaning and unloads the model. Search then works by words.',
  async run(_typed, context) {
    const report = await context.call('setMeaning', { choice: 'off' });
    await context.printResult(report, () => meaningLines(report));
  },
});

export const meaningStatus = command({
  name: 'meaning status',
  description: 'Shows which model search by meaning uses, and whether the model is available.',
  details: ['The exit code is 5 if search by meaning is on but the model is unavailable.'],
  async run(_typed, context) {
    const report = await context.call('meaning', {});
    await context.printResult(report, () => meaningLines(report));
    return exitCode(report.state);
  },
});

export const meaningRebuild = command({
  name: 'meaning rebuild',
  description: 'Deletes all vectors and makes them again in the background.',
  details: ['While vectors are made, search works by words, and by the vectors that exist.'],
  async run(_typed, context) {
    const report = await context.call('rebuildMeaning', {});
    await context.printResult(report, () => meaningLines(report));
  },
});

function meaningLines({ state, installed, choice, facts }: MeaningReport): string[] {
  const [first = '', ...rest] = describeMeaning(state);
  return columns([
    ['meaning', first],
    ...rest.map((line) => ['', line]),
    ...(facts ? [['facts', `${facts.done} of ${facts.total} have a vector`]] : []),
    ...(choice === 'off' && !installed ? [['model', 'the bundled model is not installed']] : []),
  ]);
}

/** Returns a line with the state, then lines that tell the owner what to do. */
function describeMeaning(state: MeaningState): readonly string[] {
  switch (state.at) {
    case 'off':
      return ['off'];
    case 'starting':
      return ['waiting for Ollama'];
    case 'ready':
      return [`on, with ${state.source === 'bundled' ? `the bundled model ${state.model}` : `${state.model} in Ollama`}`];
    case 'failed':
      return [state.why, state.remedy, ...(state.retry_at === undefined ? [] : [`The next attempt is at ${state.retry_at}.`])];
  }
}

const exitCode = ({ at }: MeaningState): number => (at === 'failed' ? exits.unavailable.code : exits.done.code);
