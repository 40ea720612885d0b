import { useState } from 'react';
import { useOperation } from '../memory-context.tsx';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';
import { Run } from './run.tsx';

/** Runs requested for all pipelines together. The program decrypts each run to list it, so it does not list them all. */
const LIMIT = 50;

/** The runs of one pipeline, whoever started them. Each opens to show its steps (R-WIN-44). */
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
          {runs?.length === 0 ? 'No runs' : 'Runs'} among the latest {LIMIT} of all pipelines.
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
