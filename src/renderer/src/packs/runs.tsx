import { useState } from 'react';
import { useOperation } from '../memory-context.tsx';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';
import { Run } from './run.tsx';

/** Maximum number of runs to request, for all pipelines together. Limited, because each listed run must be decrypted. */
const LIMIT = 50;

/** Lists the runs of one pipeline, including runs that agents started. Selecting a run shows its steps (R-WIN-44). */
export function Runs({ pipeline }: { pipeline: string }) {
  const { data, error } = useOperation('pipelineRuns', { limit: LIMIT });
  const [opened, setOpened] = useState<string>();
  const runs = data?.runs.filter((run) => run.pipeline === pipeline);
  const isCut = data?.runs.length === LIMIT;
  return (
    <Section title="Runs">
      <LoadError error={error} />
      {runs?.length === 0 && !isCut && (
        <p className="quiet">No runs in the last week. Runs that agents start are listed here too.</p>
      )}
      {isCut && (
        <p className="quiet">
          {runs?.length === 0
            ? `No runs of this pipeline are among the latest ${LIMIT} runs of all pipelines.`
            : `Shows only runs that are among the latest ${LIMIT} runs of all pipelines.`}
        </p>
      )}
      <ul className="plain" aria-label="Runs">
        {runs?.map(({ run_id: id, status, started_at: at, duration_ms: ms }) => (
          <li key={id} className="line">
            <span>
              <Button
                label={<When at={at} />}
                look="link"
                aria-expanded={opened === id}
                onClick={() => setOpened(opened === id ? undefined : id)}
              />
            </span>
            <span className={status === 'failed' ? 'warned small' : 'quiet'}>
              {status}
              {ms !== undefined && `, ${ms.toLocaleString()} ms`}
            </span>
            {opened === id && <Run runId={id} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}
