import type { PipelineRun } from '../../../contract/pipeline.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { useFreshLook, useWatched } from '../watched.ts';
import { Output } from './output.tsx';

const LOOK_MS = 500;

/** A run as it goes: each step, what it answered, and the way to stop it. */
export function Run({ runId }: { runId: string }) {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const { busy, failure, run } = useDoing();
  const { data, error } = useWatched('pipelineRun', { run_id: runId }, (known) =>
    known === undefined || known.status === 'running' ? LOOK_MS : undefined,
  );
  const cancel = (): void =>
    void run(async () => {
      await ask('cancelPipelineRun', { run_id: runId });
      lookAgain();
    });
  return (
    <div className="run">
      <Refused error={error} />
      {data && (
        <>
          <p role="status">{saying(data)}</p>
          <progress aria-label="Steps done" max={data.steps.length} value={done(data)} />
          <ol className="plain">
            {data.steps.map((step) => (
              <li key={step.id} className="line">
                <span>
                  <bdi>{step.id}</bdi> <span className="quiet">{step.pack}</span>
                </span>
                <span className="quiet">
                  {step.status}
                  {step.cached && ', kept from an earlier run'}
                  {step.duration_ms !== undefined && `, ${step.duration_ms.toLocaleString()} ms`}
                </span>
                {step.output !== undefined && <Output value={step.output} />}
                {step.note !== undefined && <span className="quiet">{step.note}</span>}
              </li>
            ))}
          </ol>
          {data.failure && (
            <Failed text={`${data.failure.step === undefined ? '' : `In step ${data.failure.step}: `}${data.failure.message}`} />
          )}
          {data.status === 'running' && (
            <p className="buttons">
              <button type="button" className="button" disabled={busy} onClick={cancel}>
                Cancel the run
              </button>
            </p>
          )}
        </>
      )}
      <Failed text={failure} />
    </div>
  );
}

const done = ({ steps }: PipelineRun): number =>
  steps.filter(({ status }) => status !== 'waiting' && status !== 'running').length;

function saying({ status, duration_ms: ms }: PipelineRun): string {
  switch (status) {
    case 'running':
      return 'Running…';
    case 'succeeded':
      return `Done${ms === undefined ? '' : `, in ${ms.toLocaleString()} ms`}.`;
    case 'failed':
      return 'It failed.';
    case 'cancelled':
      return 'It was cancelled.';
  }
}
