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
  /** The version that was shown when the owner began to adopt it; if it changed since, the memory refuses. */
  const [adopting, setAdopting] = useState<string>();
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
  const adopt = async (): Promise<void> => {
    await ask('adoptPipeline', { id, updated_at: adopting ?? '' });
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
            <code>{id}</code>, by <bdi>{pipeline.by_owner ? 'you' : pipeline.client}</bdi>
            {pipeline.first_written_by !== undefined && (
              <>
                {' '}
                (first written by <bdi>{pipeline.first_written_by}</bdi>)
              </>
            )}
            , changed <When at={pipeline.updated_at} />, goes <When at={pipeline.expires_at} /> unless it is run
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
          <Section title="Run">
            <InputForm schema={schemaOf(pipeline)} act="Run" busy={busy} run={start} />
            <Failed text={failure} />
            {runId !== undefined && <Run key={runId} runId={runId} />}
          </Section>
          <Runs pipeline={id} />
          <Section title="Manage">
            {!pipeline.by_owner && (
              <p className="buttons">
                <button type="button" className="button" onClick={() => setAdopting(pipeline.updated_at)}>
                  Adopt the pipeline…
                </button>
              </p>
            )}
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
      {adopting !== undefined && pipeline && (
        <Confirm title={`Adopt the pipeline ${id}?`} act="Adopt" harmless run={adopt} close={() => setAdopting(undefined)}>
          <p>
            <bdi>{pipeline.client}</bdi> wrote it. From then on it counts as yours: it runs with the rights of whichever agent
            runs it, and only you can change it. Read its steps first.
          </p>
        </Confirm>
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
