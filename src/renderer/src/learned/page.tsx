import { useState } from 'react';
import { useAsked } from '../memory-context.tsx';
import { counted, useForgetScope } from '../ui/forget-scope.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { When } from '../ui/when.tsx';

const SHOWN = 20;

const FORGETS = {
  packs: {
    scope: 'packs',
    one: 'record',
    title: 'Forget what was learned from packs?',
    says: 'The record of every run of a pack goes, and with it what was learned here. The packs themselves, the answers that were kept and what packs remember stay.',
  },
  pipelines: {
    scope: 'pipelines',
    one: 'record',
    title: 'Forget what was learned from pipelines?',
    says: 'The record of every run of a pipeline goes, and with it what was learned here. The pipelines themselves stay.',
  },
} as const;

/** What agents are told of habits, as their owner may see it. */
export function LearnedPage() {
  const { data, error } = useAsked('myDefaults', {});
  const [forgetScope, dialog] = useForgetScope();
  const [all, setAll] = useState(false);
  const recent = data?.recent ?? [];
  return (
    <Page
      title="Learned"
      says="What agents are told of your habits. It is counted from runs of packs and pipelines, never from what an agent says."
    >
      <Refused error={error} />
      {data?.note !== undefined && (
        <div className="empty">
          <p>{data.note}</p>
        </div>
      )}
      {data && data.packs.length > 0 && (
        <Section title="Packs">
          <Habits rows={data.packs.map(({ calls, ...habit }) => ({ ...habit, times: calls }))} />
        </Section>
      )}
      {data && data.pipelines.length > 0 && (
        <Section title="Pipelines">
          <Habits rows={data.pipelines.map(({ runs, ...habit }) => ({ ...habit, times: runs }))} />
        </Section>
      )}
      {data?.common_findings && (
        <Section title="Found most often">
          <ul className="plain">
            {data.common_findings.map(({ code, severity, count }) => (
              <li key={JSON.stringify([code, severity])} className="line">
                <bdi>{code}</bdi>
                <span className="quiet">
                  <bdi>{severity}</bdi>, {counted(count, 'time')}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {recent.length > 0 && (
        <Section title="Latest runs">
          <ol className="plain">
            {recent.slice(0, all ? undefined : SHOWN).map((run, index) => (
              <li key={`${run.at_unix} ${index}`} className="line">
                <span>
                  <bdi>{run.id}</bdi>{' '}
                  <span className="quiet">{run.outcome === 'ok' ? 'succeeded' : run.outcome.replaceAll('_', ' ')}</span>
                </span>
                <span className="quiet">
                  <When at={run.at_unix * 1000} />
                  {run.duration_ms !== undefined && `, ${run.duration_ms.toLocaleString()} ms`}
                </span>
              </li>
            ))}
          </ol>
          {!all && recent.length > SHOWN && (
            <p className="buttons">
              <button type="button" className="button" onClick={() => setAll(true)}>
                Show all {recent.length.toLocaleString()}
              </button>
            </p>
          )}
        </Section>
      )}
      {data && data.note === undefined && (
        <Section title="Forget">
          <p className="quiet">
            What was learned goes with the record of the runs that it was learned from. Facts are not touched.
          </p>
          <p className="buttons">
            <button type="button" className="button danger" onClick={() => forgetScope(FORGETS.packs)}>
              Forget what was learned from packs…
            </button>
            <button type="button" className="button danger" onClick={() => forgetScope(FORGETS.pipelines)}>
              Forget what was learned from pipelines…
            </button>
          </p>
        </Section>
      )}
      {dialog}
    </Page>
  );
}

interface Habit {
  readonly id: string;
  readonly times: number;
  readonly last_used_unix: number;
  readonly common_inputs?: Readonly<Record<string, string>>;
}

function Habits({ rows }: { rows: readonly Habit[] }) {
  return (
    <ul className="plain">
      {rows.map(({ id, times, last_used_unix: last, common_inputs: inputs }) => (
        <li key={id} className="line">
          <span>
            <bdi>{id}</bdi>
            {inputs && (
              <span className="quiet">
                {' '}
                usually with{' '}
                {Object.entries(inputs).map(([field, value], index) => (
                  <span key={field}>
                    {index > 0 && ', '}
                    {field} <bdi>{value}</bdi>
                  </span>
                ))}
              </span>
            )}
          </span>
          <span className="quiet">
            {counted(times, 'time')}, last <When at={last * 1000} />
          </span>
        </li>
      ))}
    </ul>
  );
}
