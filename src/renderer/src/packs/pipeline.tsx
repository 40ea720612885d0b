import { useState } from 'react';
import type { PipelineDetail } from '../../../contract/pipeline.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { Confirm, useConfirmed } from '../ui/confirm.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { useForgetScope } from '../ui/forget-scope.tsx';
import type { Labels } from '../ui/labels.ts';
import { Page, Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';
import { InputForm } from './form.tsx';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';

interface Props {
  readonly id: string;
  readonly back: () => void;
}

export function PipelinePage({ id, back }: Props) {
  const { data: pipeline, error } = useOperation('pipeline', { id });
  return (
    <Page title={pipeline?.title ?? id} description={pipeline?.description} back={{ to: 'All packs', go: back }}>
      <LoadError error={error} />
      {pipeline && (
        <>
          <p className="quiet">
            <code>{id}</code>, by <bdi>{pipeline.by_owner ? 'you' : pipeline.client}</bdi>
            {pipeline.first_written_by !== undefined && (
              <>
                {' '}
                (first written by <bdi>{pipeline.first_written_by}</bdi>)
              </>
            )}
            , changed <When at={pipeline.updated_at} />. Expires <When at={pipeline.expires_at} />, unless it runs before then.
          </p>
          {pipeline.needs_adoption !== undefined && <p className="warned">{pipeline.needs_adoption}</p>}
          <Section title="Steps">
            <ol className="plain">
              {pipeline.steps.map(({ id: step, pack, input }) => (
                <li key={step} className="line">
                  <span>
                    <bdi>{step}</bdi>
                    <pre className="small">{JSON.stringify(input, null, 2)}</pre>
                  </span>
                  <code>{pack}</code>
                </li>
              ))}
            </ol>
          </Section>
          <RunForm pipeline={pipeline} />
          <Runs pipeline={id} />
          <Manage pipeline={pipeline} back={back} />
        </>
      )}
    </Page>
  );
}

function RunForm({ pipeline }: { pipeline: PipelineDetail }) {
  const { call } = useMemory();
  const { busy, failure, run } = useTask(labelsOf(pipeline));
  const [runId, setRunId] = useState<string>();
  const start = (inputs: Record<string, unknown>): void =>
    void run(async () => setRunId((await call('runPipeline', { id: pipeline.id, inputs })).run_id));
  return (
    <Section title="Run">
      <InputForm schema={schemaOf(pipeline)} busy={busy} run={start} />
      <ErrorText text={failure} />
      {runId !== undefined && <Run key={runId} runId={runId} />}
    </Section>
  );
}

function Manage({ pipeline, back }: { pipeline: PipelineDetail; back: () => void }) {
  const { id } = pipeline;
  const { call } = useMemory();
  const confirmed = useConfirmed();
  const [deleting, setDeleting] = useState(false);
  /** `updated_at` of the version that the owner saw. Adoption fails if the pipeline was changed after that time. */
  const [adopting, setAdopting] = useState<string>();
  const [forgetScope, dialog] = useForgetScope();
  const remove = async (): Promise<void> => {
    await call('deletePipeline', { id });
    back();
  };
  const adopt = async (): Promise<void> => {
    await call('adoptPipeline', { id, updated_at: adopting ?? '' });
  };
  const forgetRecords = (): void =>
    forgetScope({
      title: `Forget the run records of ${id}?`,
      scope: `pipeline:${id}`,
      noun: 'record',
      text: 'The run records of this pipeline and the habits learned from them will be deleted. The pipeline itself stays.',
    });
  return (
    <Section title="Manage">
      {!pipeline.by_owner && (
        <p className="buttons">
          <Button label="Adopt the pipeline…" onClick={() => setAdopting(pipeline.updated_at)} />
        </p>
      )}
      <p className="buttons">
        <Button label="Forget the run records…" look="danger" onClick={forgetRecords} />
        <Button label="Delete the pipeline…" look="danger" onClick={() => confirmed(remove, () => setDeleting(true))} />
      </p>
      {adopting !== undefined && (
        <Confirm title={`Adopt the pipeline ${id}?`} button="Adopt" harmless run={adopt} close={() => setAdopting(undefined)}>
          <p>
            <bdi>{pipeline.client}</bdi> wrote this pipeline. If you adopt it, it becomes yours: only you can change it, and each
            run has the rights of the agent that starts it. Read the steps first.
          </p>
        </Confirm>
      )}
      {deleting && (
        <Confirm title={`Delete the pipeline ${id}?`} button="Delete" run={remove} close={() => setDeleting(false)}>
          <p>Active runs continue, and run records stay for a week. You can't undo this.</p>
        </Confirm>
      )}
      {dialog}
    </Section>
  );
}

/** Labels of the inputs. Error messages refer to an input as `inputs.<name>`, but the form shows only the name. */
const labelsOf = (pipeline: PipelineDetail): Labels => ({
  inputs: 'The input',
  ...Object.fromEntries((pipeline.inputs ?? []).map(({ name }) => [`inputs.${name}`, name])),
});

/** Builds a schema for the inputs of a pipeline. The inputs have no types, so each field takes text. Other values need JSON. */
const schemaOf = ({ inputs = [] }: PipelineDetail): Record<string, unknown> => ({
  type: 'object',
  properties: Object.fromEntries(
    inputs.map(({ name, description, default: usual }) => [name, { type: 'string', description, default: usual }]),
  ),
  required: inputs.filter(({ required = true }) => required).map(({ name }) => name),
});
