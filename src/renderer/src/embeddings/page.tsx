import { type FormEvent, useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { useActions } from '../ui/actions.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { TextField } from '../ui/text-field.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook, useWatched } from '../watched.ts';
import { OpenClaw } from './openclaw.tsx';

type Report = OperationOutput<'embeddings'>;
type State = Report['state'];

/** On its way somewhere, so it is looked at often. */
const PASSING: ReadonlySet<State['at']> = new Set(['starting', 'pulling']);
const OFTEN_MS = 500;
const SELDOM_MS = 3000;

/** The machine's own embeddings: whether they are there, by what, and how to come to them. */
export function EmbeddingsPage() {
  const { data, error } = useWatched('embeddings', {}, (known) =>
    known !== undefined && PASSING.has(known.state.at) ? OFTEN_MS : SELDOM_MS,
  );
  return (
    <Page
      title="Embeddings"
      says="Vectors of texts, made on this machine by Ollama, for agents that search by meaning. Off, nothing of it runs."
    >
      <Refused error={error} />
      {data && <Embeddings report={data} />}
    </Page>
  );
}

function Embeddings({ report }: { report: Report }) {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const doing = useDoing();
  const [approving, setApproving] = useState(false);
  const [pulling, setPulling] = useState(false);
  const { state, on, adopt, adoptable } = report;
  const turn = (choice: { on: boolean; adopt?: boolean }): void =>
    void doing.run(async () => {
      await ask('setEmbeddings', choice);
      lookAgain();
    });
  const cancel = (): void =>
    void doing.run(async () => {
      await ask('cancelPull', {});
      lookAgain();
    });
  useActions([{ name: on ? 'Turn embeddings off' : 'Turn embeddings on', run: () => turn({ on: !on }) }]);
  return (
    <>
      <div role="status" aria-label="State">
        <p>
          <strong>{titleOf(state)}</strong>
        </p>
        <StateOf state={state} />
      </div>
      <p className="buttons">
        <button
          type="button"
          className={on ? 'button' : 'button primary'}
          disabled={doing.busy}
          onClick={() => turn({ on: !on })}
        >
          {on ? 'Turn off' : 'Turn on'}
        </button>
        {state.at === 'failed' && (
          <button type="button" className="button" disabled={doing.busy} onClick={() => turn({ on: true })}>
            Try again
          </button>
        )}
        {state.at === 'unapproved' && (
          <button type="button" className="button primary" onClick={() => setApproving(true)}>
            Approve Ollama…
          </button>
        )}
        {needsModel(state) && (
          <button type="button" className="button primary" onClick={() => setPulling(true)}>
            Fetch the model…
          </button>
        )}
        {state.at === 'pulling' && (
          <button type="button" className="button" disabled={doing.busy} onClick={cancel}>
            Cancel
          </button>
        )}
      </p>
      <Failed text={doing.failure} />
      {on && (
        <p className="fields">
          <label>
            <input
              type="checkbox"
              checked={adopt}
              disabled={doing.busy}
              onChange={({ target }) => turn({ on: true, adopt: target.checked })}
            />{' '}
            Use the Ollama that runs at <bdi>{adoptable}</bdi>, instead of one of our own
          </label>
        </p>
      )}
      <Details report={report} />
      {state.at === 'ready' && <Nearness />}
      <OpenClaw ready={state.at === 'ready'} />
      {report.log.length > 0 && (
        <Section title="The end of its log">
          <p className="quiet">Only what cannot repeat a text that was embedded.</p>
          <pre className="output">{report.log.join('\n')}</pre>
        </Section>
      )}
      {approving && <Approve report={report} close={() => setApproving(false)} />}
      {pulling && <Pull report={report} close={() => setPulling(false)} />}
    </>
  );
}

function StateOf({ state }: { state: State }) {
  switch (state.at) {
    case 'off':
    case 'starting':
    case 'ready':
      return undefined;
    case 'pulling':
      return (
        <>
          <progress
            aria-label="Fetched"
            max={state.of === 0 ? undefined : state.of}
            value={state.of === 0 ? undefined : state.done}
          />
          <p className="quiet number">{state.of === 0 ? 'Looking for it…' : `${sized(state.done)} of ${sized(state.of)}`}</p>
        </>
      );
    case 'failed':
      return (
        <p className="warned">
          {state.why} {state.remedy}
          {state.retry_at !== undefined && (
            <>
              {' '}
              It is tried again <When at={state.retry_at} />.
            </>
          )}
        </p>
      );
    case 'asleep':
    case 'unapproved':
    case 'no_model':
      return <p>{state.remedy}</p>;
  }
}

function Details({ report: { ollama, version, model, adopt, free } }: { report: Report }) {
  return (
    <Section title="What makes them">
      <dl className="pairs">
        <dt>Model</dt>
        <dd>
          <bdi>{model.name}</bdi>
          {model.disk !== undefined && model.memory !== undefined && (
            <span className="quiet">
              , {sized(model.disk)} on the disk, about {sized(model.memory)} of memory while it works
            </span>
          )}
        </dd>
        {free.disk !== undefined && (
          <>
            <dt>Free</dt>
            <dd>
              {sized(free.disk)} on the disk{free.memory !== undefined && `, ${sized(free.memory)} of memory`}
            </dd>
          </>
        )}
        {!adopt && ollama && (
          <>
            <dt>Ollama</dt>
            <dd>
              <bdi className="address">{ollama.path}</bdi>
              <span className="quiet">{ollama.approved ? ', approved' : ', not approved'}</span>
            </dd>
          </>
        )}
        {version !== undefined && (
          <>
            <dt>Version</dt>
            <dd>
              <bdi>{version}</bdi>
            </dd>
          </>
        )}
      </dl>
    </Section>
  );
}

function Approve({ report: { ollama, state }, close }: { report: Report; close: () => void }) {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const hash = ollama?.sha256;
  const approve = async (): Promise<void> => {
    if (hash !== undefined) await ask('approveOllama', { hash });
    lookAgain();
  };
  return (
    <Confirm
      title="Let the program start this Ollama?"
      act="Approve"
      harmless
      ready={hash !== undefined}
      run={approve}
      close={close}
    >
      <p>
        {state.at === 'unapproved' && state.changed
          ? 'It is not the one that you approved. If you did not update it, do not approve it.'
          : 'Exactly this file may be started from now on. You are asked again when it changes.'}
      </p>
      <dl className="pairs">
        <dt>Path</dt>
        <dd>
          <bdi className="address">{ollama?.path}</bdi>
        </dd>
        <dt>Size</dt>
        <dd>{ollama?.size?.toLocaleString()} bytes</dd>
        <dt>SHA-256</dt>
        <dd>
          <code>{hash}</code>
        </dd>
      </dl>
    </Confirm>
  );
}

function Pull({ report: { model, free }, close }: { report: Report; close: () => void }) {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const pull = async (): Promise<void> => {
    await ask('pullModel', {});
    lookAgain();
  };
  return (
    <Confirm title={`Fetch the model ${model.name}?`} act="Fetch" harmless run={pull} close={close}>
      <p>
        {model.disk === undefined || model.memory === undefined
          ? 'How much it takes is not known.'
          : `It takes ${sized(model.disk)} of the disk, and about ${sized(model.memory)} of memory while it works.`}{' '}
        {free.disk !== undefined && `${sized(free.disk)} of the disk`}
        {free.memory !== undefined && ` and ${sized(free.memory)} of memory`} are free.
      </p>
      <p className="quiet">Ollama gets it from the network. It can be cancelled, and goes on where it was.</p>
    </Confirm>
  );
}

function Nearness() {
  const { ask } = useMemory();
  const { busy, failure, run } = useDoing({ one: 'One sentence', other: 'Another sentence' });
  const [one, setOne] = useState('');
  const [other, setOther] = useState('');
  const [answer, setAnswer] = useState<OperationOutput<'testEmbeddings'>>();
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => setAnswer(await ask('testEmbeddings', { one, other })));
  };
  return (
    <Section title="How near are these two sentences?">
      <form className="fields" onSubmit={onSubmit}>
        <TextField label="One sentence" needed value={one} change={setOne} />
        <TextField label="Another sentence" needed value={other} change={setOther} />
        <p className="buttons">
          <button className="button" disabled={busy}>
            Compare
          </button>
        </p>
        <div role="status" aria-label="Nearness">
          {answer && (
            <>
              <p>
                {nearnessOf(answer.nearness)}: <span className="number">{answer.nearness.toFixed(3)}</span>
              </p>
              <p className="quiet">
                1 is the same. Vectors of {answer.dimensions.toLocaleString()} numbers, in {answer.duration_ms.toLocaleString()}{' '}
                ms.
              </p>
            </>
          )}
        </div>
        <Failed text={failure} />
      </form>
    </Section>
  );
}

/** In words that hold for the usual models; the number beside them is exact. */
function nearnessOf(nearness: number): string {
  if (nearness > 0.7) return 'Very near';
  if (nearness > 0.4) return 'Near';
  return nearness > 0.2 ? 'Somewhat near' : 'Far from each other';
}

function titleOf(state: State): string {
  switch (state.at) {
    case 'off':
      return 'Off';
    case 'asleep':
      return 'On, and waiting for the program';
    case 'starting':
      return 'Starting…';
    case 'unapproved':
      return state.changed ? 'Ollama has changed' : 'Ollama was found, and waits for you';
    case 'no_model':
      return 'The model is not there yet';
    case 'pulling':
      return 'Fetching the model…';
    case 'ready':
      return state.whose === 'own' ? 'Ready, by an Ollama of our own' : 'Ready, by the Ollama that you chose';
    case 'failed':
      return 'Not available';
  }
}

const needsModel = (state: State): boolean =>
  state.at === 'no_model' || (state.at === 'failed' && (state.trouble === 'pull_failed' || state.trouble === 'wrong_dimension'));

const GB = 1_000_000_000;

const sized = (bytes: number): string =>
  bytes < GB
    ? `${Math.round(bytes / 1_000_000).toLocaleString()} MB`
    : `${(bytes / GB).toLocaleString(undefined, { maximumFractionDigits: 1 })} GB`;
