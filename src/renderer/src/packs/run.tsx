import type { PipelineRun } from '../../../contract/pipeline.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { Output } from './output.tsx';

const POLL_MS = 500;

export function Run({ runId }: { runId: string }) {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, run } = useTask();
  const { data, error } = usePolledOperation('pipelineRun', { run_id: runId }, (known) =>
    known === undefined || known.status === 'running' ? POLL_MS : undefined,
  );
  const cancel = (): void =>
    void run(async () => {
      await call('cancelPipelineRun', { run_id: runId });
      refresh();
    });
  return (
    <div className="run">
      <LoadError error={error} />
      {data && (
        <>
          <p role="status">{statusText(data)}</p>
          <progress aria-label="Finished steps" max={data.steps.length} value={finishedSteps(data)} />
          <ol className="plain">
            {data.steps.map((step) => (
              <li key={step.id} className="line">
                <span>
                  <bdi>{step.id}</bdi> <span className="quiet">{step.pack}</span>
                </span>
                <span className="quiet">
                  {step.status}
                  {step.cached && ', cached'}
                  {step.duration_ms !== undefined && `, ${step.duration_ms.toLocaleString()} ms`}
                </span>
                {step.output !== undefined && <Output value={step.output} />}
                {step.note !== undefined && <span className="quiet">{step.note}</span>}
              </li>
            ))}
          </ol>
          {data.failure && (
            <ErrorText text={`${data.failure.step === undefined ? '' : `Step ${data.failure.step}: `}${data.failure.message}`} />
          )}
          {data.status === 'running' && (
            <p className="buttons">
              <Button label="Cancel the run" disabled={busy} onClick={cancel} />
            </p>
          )}
        </>
      )}
      <ErrorText text={failure} />
    </div>
  );
}

const finishedSteps = ({ steps }: PipelineRun): number =>
  steps.filter(({ status }) => status !== 'waiting' && status !== 'running').length;

function statusText({ status, duration_ms: ms }: PipelineRun): string {
  switch (status) {
    case 'running':
      return 'Running…';
    case 'succeeded':
      return ms === undefined ? 'Finished.' : `Finished in ${ms.toLocaleString()} ms.`;
    case 'failed':
      return 'The run failed.';
    case 'cancelled':
      return 'The run was cancelled.';
  }
}
