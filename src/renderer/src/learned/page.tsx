import { useState } from 'react';
import { useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { useForgetScope } from '../ui/forget-scope.tsx';
import { Page, Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';

const RUNS_SHOWN = 20;

const FORGET_REQUESTS = {
  packs: {
    scope: 'packs',
    noun: 'record',
    title: 'Forget what was learned from packs?',
    text: 'All run records of packs and the habits learned from them will be deleted. The packs, their cached results and their own memory stay.',
  },
  pipelines: {
    scope: 'pipelines',
    noun: 'record',
    title: 'Forget what was learned from pipelines?',
    text: 'All run records of pipelines and the habits learned from them will be deleted. The pipelines stay.',
  },
} as const;

export function LearnedPage() {
  const { data, error } = useOperation('myDefaults', {});
  const [forgetScope, dialog] = useForgetScope();
  const [showAll, setShowAll] = useState(false);
  const recent = data?.recent ?? [];
  return (
    <Page
      title="Learned"
      description="Habits of all your agents, counted from their runs of packs and pipelines. Each agent sees only what was learned from its own runs."
    >
      <LoadError error={error} />
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
        <Section title="Most frequent findings">
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
            {recent.slice(0, showAll ? undefined : RUNS_SHOWN).map((run, index) => (
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
          {!showAll && recent.length > RUNS_SHOWN && (
            <p className="buttons">
              <Button label={`Show all ${recent.length.toLocaleString()}`} onClick={() => setShowAll(true)} />
            </p>
          )}
        </Section>
      )}
      {data && data.note === undefined && (
        <Section title="Forget">
          <p className="quiet">Habits are deleted together with the run records they were learned from. Facts stay.</p>
          <p className="buttons">
            <Button
              label="Forget what was learned from packs…"
              look="danger"
              onClick={() => forgetScope(FORGET_REQUESTS.packs)}
            />
            <Button
              label="Forget what was learned from pipelines…"
              look="danger"
              onClick={() => forgetScope(FORGET_REQUESTS.pipelines)}
            />
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
      {rows.map(({ id, times, last_used_unix: lastUsed, common_inputs: inputs }) => (
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
            {counted(times, 'time')}, last <When at={lastUsed * 1000} />
          </span>
        </li>
      ))}
    </ul>
  );
}
