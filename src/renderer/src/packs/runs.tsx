import { useState } from 'react';
import { useAsked } from '../memory-context.tsx';
import { Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { When } from '../ui/when.tsx';
import { Run } from './run.tsx';

/** Of all pipelines together: each is opened to be listed, so not every one there is. */
const NEWEST = 50;

/** The runs of one pipeline, whoever began them; each opens to its steps. */
export function Runs({ pipeline }: { pipeline: string }) {
  const { data, error } = useAsked('pipelineRuns', { limit: NEWEST });
  const [opened, setOpened] = useState<string>();
  const its = data?.runs.filter((run) => run.pipeline === pipeline);
  return (
    <Section title="Runs">
      <Refused error={error} />
      {its?.length === 0 && data?.runs.length !== NEWEST && (
        <p className="quiet">None in the last week. Those that agents begin are listed here too.</p>
      )}
      {data?.runs.length === NEWEST && (
        <p className="quiet">
          {its?.length === 0 ? 'None' : 'Those'} among the newest {NEWEST} of all pipelines.
        </p>
      )}
      <ul className="plain" aria-label="Runs">
        {its?.map(({ run_id: id, status, started_at: at, duration_ms: ms }) => (
          <li key={id} className="line">
            <span>
              <button
                type="button"
                className="opener"
                aria-expanded={opened === id}
                onClick={() => setOpened(opened === id ? undefined : id)}
              >
                <When at={at} />
              </button>
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
