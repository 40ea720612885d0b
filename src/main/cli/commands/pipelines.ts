import { Failure } from '../../../contract/failure.ts';
import type { PipelineDetail } from '../../../contract/pipeline.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, formatCount, indent, prettyJson, escapeControls } from '../layout.ts';
import { formatMinute } from '../times.ts';

const ID = { says: 'The pipeline, by its id in the list.' };

export const pipelineList = command({
  name: 'pipeline list',
  says: 'Lists pipelines with their authors, and why one cannot run.',
  async run(_typed, desk) {
    const answer = await (await desk.memory()).call('pipelines', {});
    await desk.printResult(answer, () =>
      columns(
        answer.pipelines.map(({ id, title = '', steps, needs_adoption: why = '', ...about }) => [
          escapeControls(id),
          formatCount(steps, 'step'),
          `by ${authorOf(about)}`,
          escapeControls(why === '' ? title : why),
        ]),
      ),
    );
    if (!desk.json && answer.pipelines.length === 0) desk.terminal.printToStderr('There are no pipelines.');
  },
});

export const pipelineShow = command({
  name: 'pipeline show',
  says: 'Shows a pipeline with its author, its inputs and its steps.',
  arguments: { id: ID },
  async run({ arguments: { id } }, desk) {
    const pipeline = await (await desk.memory()).call('pipeline', { id });
    await desk.printResult(pipeline, () => inFull(pipeline));
  },
});

export const pipelineAdopt = command({
  name: 'pipeline adopt',
  says: 'Makes you responsible for a pipeline that another program wrote.',
  arguments: { id: ID },
  options: { yes: { says: 'Does not ask; needed where nobody can be asked.' } },
  more: [
    'It then counts as yours: it runs with the rights of the client that runs it, and only you can change it. Needed when its author has no valid token any more, or when it was made before authors were recorded.',
    'What you adopt is what is shown. If its author changes it while you read, nothing is adopted.',
  ],
  async run({ arguments: { id }, options }, desk) {
    const memory = await desk.memory();
    const pipeline = await memory.call('pipeline', { id });
    if (pipeline.by_owner) throw new Failure('invalid_input', 'This pipeline is yours already; nothing was changed.');
    if (!desk.json) for (const line of inFull(pipeline)) desk.terminal.printToStderr(line);
    if (!(await desk.confirm(options.yes, async () => `Adopt this pipeline of ${escapeControls(pipeline.client)}?`))) {
      desk.terminal.printToStderr('Nothing was changed.');
      return exits.failed.code;
    }
    const answer = await memory.call('adoptPipeline', { id, updated_at: pipeline.updated_at });
    await desk.printResult(answer, () => [`The pipeline ${escapeControls(id)} is yours now.`]);
    return exits.done.code;
  },
});

const authorOf = ({ client, by_owner: owned }: Pick<PipelineDetail, 'client' | 'by_owner'>): string =>
  owned ? 'you' : escapeControls(client);

function inFull({ id, title, description, inputs, steps, updated_at: changed, ...about }: PipelineDetail): string[] {
  const { first_written_by: first, needs_adoption: why } = about;
  return [
    escapeControls(id),
    `by ${authorOf(about)}${first === undefined ? '' : `, first written by ${escapeControls(first)}`}, changed ${formatMinute(changed)}`,
    ...(why === undefined ? [] : [escapeControls(why)]),
    '',
    ...indent(escapeControls(prettyJson({ title, description, inputs, steps }))),
  ];
}
