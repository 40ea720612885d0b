import { Failure } from '../../../contract/failure.ts';
import type { PipelineDetail } from '../../../contract/pipeline.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls, formatCount, indent, prettyJson } from '../layout.ts';
import { formatMinute } from '../times.ts';

const ID = { description: 'Id of the pipeline, as shown by `pipeline list`.' };

export const pipelineList = command({
  name: 'pipeline list',
  description: 'Lists pipelines with their authors, and the reason if a pipeline cannot run.',
  async run(_typed, context) {
    const answer = await context.call('pipelines', {});
    await context.printTable(
      answer,
      answer.pipelines.map(({ id, title = '', steps, needs_adoption: why = '', ...about }) => [
        escapeControls(id),
        formatCount(steps, 'step'),
        `by ${authorOf(about)}`,
        escapeControls(why === '' ? title : why),
      ]),
      'There are no pipelines.',
    );
  },
});

export const pipelineShow = command({
  name: 'pipeline show',
  description: 'Shows a pipeline with its author, its inputs and its steps.',
  arguments: { id: ID },
  async run({ arguments: { id } }, context) {
    const pipeline = await context.call('pipeline', { id });
    await context.printResult(pipeline, () => pipelineLines(pipeline));
  },
});

export const pipelineAdopt = command({
  name: 'pipeline adopt',
  description: 'Makes you the author of a pipeline that a client wrote.',
  arguments: { id: ID },
  options: { yes: { description: 'Skips the confirmation. Required without a terminal.' } },
  details: [
    'The pipeline then runs with the rights of the client that starts it, and only you can change it. Adopt a pipeline if its author no longer has a valid token, or if it was created before Helmdeck Memory recorded authors.',
    'You adopt exactly the version that is shown. If the author changes the pipeline in the meantime, nothing is adopted.',
  ],
  async run({ arguments: { id }, options }, context) {
    const pipeline = await context.call('pipeline', { id });
    if (pipeline.by_owner) throw new Failure('invalid_input', 'This pipeline is already yours. Nothing was changed.');
    context.hint(...pipelineLines(pipeline));
    const question = (): string => `Adopt this pipeline, which ${escapeControls(pipeline.client)} wrote?`;
    if (!(await context.confirm(options.yes, question))) return exits.failed.code;
    const answer = await context.call('adoptPipeline', { id, updated_at: pipeline.updated_at });
    await context.printResult(answer, () => [`The pipeline ${escapeControls(id)} is now yours.`]);
    return exits.done.code;
  },
});

const authorOf = ({ client, by_owner: owned }: Pick<PipelineDetail, 'client' | 'by_owner'>): string =>
  owned ? 'you' : escapeControls(client);

function pipelineLines({ id, title, description, inputs, steps, updated_at: changed, ...about }: PipelineDetail): string[] {
  const { first_written_by: first, needs_adoption: why } = about;
  return [
    escapeControls(id),
    `by ${authorOf(about)}${first === undefined ? '' : `, first written by ${escapeControls(first)}`}, changed ${formatMinute(changed)}`,
    ...(why === undefined ? [] : [escapeControls(why)]),
    '',
    ...indent(escapeControls(prettyJson({ title, description, inputs, steps }))),
  ];
}
