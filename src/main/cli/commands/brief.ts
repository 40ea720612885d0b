import { command } from '../command.ts';
import { repositoryRoot } from '../repository-root.ts';
import { given } from '../values.ts';

export const brief = command({
  name: 'brief',
  description: 'Shows what the hooks of agents put before a model: what is worth knowing now.',
  options: {
    prompt: {
      value: '<text>',
      description: 'What was said to the agent. Without it, shows the brief for the start of a session.',
    },
    folder: { value: '<path>', description: 'A folder of the project. Default: the current folder.' },
    session: { value: '<id>', description: 'Id of a session. Facts that were told in this session are left out.' },
    repeat: { description: 'Tells everything again, as after a compaction of the context.' },
  },
  details: [
    'The project is the Git repository that contains the folder. Facts about it have the tag project:<name of its root folder>. Prints nothing if there is nothing to say.',
  ],
  examples: ['brief', 'brief --prompt "set up the tests" --json'],
  async run({ options: { prompt, folder = '.', session, repeat } }, context) {
    const root = repositoryRoot(folder);
    const answer = await context.call('brief', { folder: root, ...given({ prompt, session }), ...(repeat && { repeat }) });
    await context.printResult(answer, () => (answer.text === '' ? [] : answer.text.split('\n')));
    if (answer.text === '') context.hint('There is nothing to say.');
  },
});
