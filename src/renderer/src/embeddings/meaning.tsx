import type { OperationOutput } from '../../../contract/operations.ts';
import type { MeaningChoice } from '../../../contract/status.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation } from '../polling.ts';
import { useTask } from '../task.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { FailedState } from './state.tsx';

type Report = OperationOutput<'meaning'>;

const WORKING_POLL_MS = 1000;
const POLL_MS = 5000;

/** Shows which model search by meaning uses and how many facts have a vector. Turns it on and off, and rebuilds the vectors. */
export function SearchByMeaning() {
  const { data, error, refetch } = usePolledOperation('meaning', {}, (known) =>
    known !== undefined && isWorking(known) ? WORKING_POLL_MS : POLL_MS,
  );
  return (
    <Section title="Search by meaning">
      <p className="quiet">Finds the facts that answer a question, even if they share no word with it.</p>
      <LoadError error={error} />
      {data && <Controls report={data} refetch={() => void refetch()} />}
    </Section>
  );
}

function Controls({ report, refetch }: { report: Report; refetch: () => void }) {
  const { call } = useMemory();
  const { busy, failure, run } = useTask();
  const { state, choice, installed, facts } = report;
  const on = choice !== 'off';
  const ready = state.at === 'ready';
  const runAndRefetch = (work: () => Promise<unknown>): void =>
    void run(async () => {
      await work();
      refetch();
    });
  const choose = (next: MeaningChoice): void => runAndRefetch(() => call('setMeaning', { choice: next }));
  const rebuild = (): void => runAndRefetch(() => call('rebuildMeaning', {}));
  const turn = (): void => choose(on ? 'off' : installed ? 'bundled' : 'ollama');
  const turnLabel = on ? 'Turn off search by meaning' : 'Turn on search by meaning';
  useActions([{ name: turnLabel, run: turn }, ...(ready ? [{ name: 'Rebuild the vectors', run: rebuild }] : [])]);
  return (
    <>
      <div role="status" aria-label="Search by meaning">
        <p>
          <strong>{titleOf(state)}</strong>
        </p>
        {state.at === 'failed' && <FailedState {...state} />}
      </div>
      {facts && facts.total > 0 && <Progress {...facts} />}
      <ErrorText text={failure} />
      <p className="buttons">
        <Button label={turnLabel} look={on ? undefined : 'primary'} disabled={busy} onClick={turn} />
        {state.at === 'failed' && (
          <Button label="Try again" aria-label="Try again to search by meaning" disabled={busy} onClick={() => choose(choice)} />
        )}
        {ready && <Button label="Rebuild the vectors" disabled={busy} onClick={rebuild} />}
      </p>
      {on && <ModelChoice report={report} busy={busy} choose={choose} />}
      {!installed && <p className="quiet">The bundled model is not installed, so search by meaning needs Ollama.</p>}
    </>
  );
}

/** The owner's choice between the two models. */
function ModelChoice({
  report: { choice, installed },
  busy,
  choose,
}: {
  report: Report;
  busy: boolean;
  choose: (next: MeaningChoice) => void;
}) {
  if (!installed && choice === 'ollama') return undefined;
  return (
    <p className="fields">
      <label>
        <input
          type="checkbox"
          checked={choice === 'ollama'}
          disabled={busy}
          onChange={({ target }) => choose(target.checked ? 'ollama' : 'bundled')}
        />{' '}
        Use the model in Ollama instead of the bundled model. Ollama then receives every fact.
      </label>
    </p>
  );
}

function Progress({ done, total }: { done: number; total: number }) {
  if (done >= total) {
    return (
      <p className="quiet number">
        {total === 1 ? 'The fact has a vector.' : `All ${total.toLocaleString()} facts have a vector.`}
      </p>
    );
  }
  return (
    <>
      <progress aria-label="Facts with a vector" max={total} value={done} />
      <p className="quiet number">
        {done.toLocaleString()} of {total.toLocaleString()} facts have a vector. Facts without a vector are found by their words.
      </p>
    </>
  );
}

function titleOf(state: Report['state']): string {
  switch (state.at) {
    case 'off':
      return 'Off: search compares words only';
    case 'starting':
      return 'Waiting for Ollama…';
    case 'ready':
      return state.source === 'bundled' ? 'On, with the bundled model' : `On, with ${state.model} in Ollama`;
    case 'failed':
      return 'Not available: search compares words only';
  }
}

const isWorking = ({ state, facts }: Report): boolean =>
  state.at === 'starting' || (state.at === 'ready' && facts !== undefined && facts.done < facts.total);
