import { useState } from 'react';
import type { PipelineDetail } from '../../../contract/pipeline.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useIsAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { useForgetScope } from '../ui/forget-scope.tsx';
import type { Labels } from '../ui/labels.ts';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { InputForm } from './form.tsx';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';

interface Props {
  readonly id: string;
  readonly back: () => void;
}

/** One pipeline: its steps, a run of it as it goes, and the runs there were. */
export function PipelinePage({ id, back }: Props) {
  const { ask } = useMemory();
  const { say } = useToast();
  const isAsked = useIsAsked();
  const { data: pipeline, error } = useAsked('pipeline', { id });
  const { busy, failure, run } = useDoing(labelsOf(pipeline));
  const [runId, setRunId] = useState<string>();
  const [deleting, setDeleting] = useState(false);
  const [forgetScope, dialog] = useForgetScope();
  const start = (inputs: Record<string, unknown>): void =>
    void run(async () => setRunId((await ask('runPipeline', { id, inputs })).run_id));
  const remove = async (): Promise<void> => {
    await ask('deletePipeline', { id });
    back();
  };
  const startDeleting = (): void => {
    if (isAsked) remove().catch((refused: Error) => say({ text: refused.message }));
    else setDeleting(true);
  };
  const clear = (): void =>
    forgetScope({
      title: `Forget the record of ${id}?`,
      scope: `pipeline:${id}`,
      one: 'record',
      says: 'The record of its runs goes, and what was learned from it. The pipeline itself stays.',
    });
  return (
    <Page title={pipeline?.title ?? id} says={pipeline?.description} back={{ to: 'All packs', go: back }}>
      <Refused error={error} />
      {pipeline && (
        <>
          <p className="quiet">
            <code>{id}</code>, changed <When at={pipeline.updated_at} />, goes <When at={pipeline.expires_at} /> unless it is run
          </p>
          <Section title="Steps">
            <ol className="plain">
              {pipeline.steps.map(({ id: step, pack }) => (
                <li key={step} className="line">
                  <bdi>{step}</bdi>
                  <code>{pack}</code>
                </li>
              ))}
            </ol>
          </Section>
          <Section title="Run">
            <InputForm schema={schemaOf(pipeline)} act="Run" busy={busy} run={start} />
            <Failed text={failure} />
            {runId !== undefined && <Run key={runId} runId={runId} />}
          </Section>
          <Runs pipeline={id} />
          <Section title="Delete">
            <p className="buttons">
              <button type="button" className="button danger" onClick={clear}>
                Forget its record…
              </button>
              <button type="button" className="button danger" onClick={startDeleting}>
                Delete the pipeline…
              </button>
            </p>
          </Section>
        </>
      )}
      {deleting && (
        <Confirm title={`Delete the pipeline ${id}?`} act="Delete" run={remove} close={() => setDeleting(false)}>
          <p>It goes for good. Runs under way go on, and records of runs stay their week. There is no undo.</p>
        </Confirm>
      )}
      {dialog}
    </Page>
  );
}

/** A refusal names the inputs as a whole, and the form each by its own name. */
const labelsOf = (pipeline: PipelineDetail | undefined): Labels => ({
  inputs: 'The input',
  ...Object.fromEntries((pipeline?.inputs ?? []).map(({ name }) => [`inputs.${name}`, name])),
});

/** Inputs of a pipeline have no types: what is typed is text, and what is more is written as JSON. */
const schemaOf = ({ inputs = [] }: PipelineDetail): Record<string, unknown> => ({
  type: 'object',
  properties: Object.fromEntries(
    inputs.map(({ name, description, default: usual }) => [name, { type: 'string', description, default: usual }]),
  ),
  required: inputs.filter(({ required = true }) => required).map(({ name }) => name),
});
