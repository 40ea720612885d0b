import { useState } from 'react';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Page, Section } from '../ui/page.tsx';
import { ApproveOllama, DownloadModel } from './dialogs.tsx';
import { SearchByMeaning } from './meaning.tsx';
import { OpenClaw } from './openclaw.tsx';
import { SimilarityTest } from './similarity.tsx';
import { type Report, sizeText, StateText } from './state.tsx';

const TRANSITIONS: ReadonlySet<Report['state']['at']> = new Set(['starting', 'pulling']);
const FAST_POLL_MS = 500;
const POLL_MS = 3000;

export function EmbeddingsPage() {
  const { data, error } = usePolledOperation('embeddings', {}, (known) =>
    known !== undefined && TRANSITIONS.has(known.state.at) ? FAST_POLL_MS : POLL_MS,
  );
  return (
    <Page
      title="Embeddings"
      description="A model on this computer turns texts into vectors. Texts that mean the same have similar vectors, so a search can find them by meaning."
    >
      <SearchByMeaning />
      <LoadError error={error} />
      {data && <Embeddings report={data} />}
    </Page>
  );
}

function Embeddings({ report }: { report: Report }) {
  const { state, on, adopt, adoptable } = report;
  const { busy, failure, configure, cancelDownload } = useEmbeddingsCommands();
  const [dialog, setDialog] = useState<'approve' | 'download'>();
  const close = (): void => setDialog(undefined);
  useActions([{ name: on ? 'Turn off Ollama' : 'Turn on Ollama', run: () => configure({ on: !on }) }]);
  const bundled = state.at === 'ready' && state.whose === 'bundled';
  return (
    <>
      <Section title="Ollama">
        <p className="quiet">
          Ollama provides other models, for search by meaning and for agents that ask for vectors, such as OpenClaw. While Ollama
          is off, Helmdeck Memory does not start it.
        </p>
        <StateText state={state} failure={failure} />
        <p className="buttons">
          <Button label={on ? 'Turn off Ollama' : 'Turn on Ollama'} disabled={busy} onClick={() => configure({ on: !on })} />
          {state.at === 'failed' && (
            <Button
              label="Try again"
              aria-label="Try again to start Ollama"
              disabled={busy}
              onClick={() => configure({ on: true })}
            />
          )}
          {state.at === 'unapproved' && <Button label="Approve Ollama…" look="primary" onClick={() => setDialog('approve')} />}
          {needsModel(state) && <Button label="Download the model…" look="primary" onClick={() => setDialog('download')} />}
          {state.at === 'pulling' && <Button label="Cancel" disabled={busy} onClick={cancelDownload} />}
        </p>
        {on && (
          <p className="fields">
            <label>
              <input
                type="checkbox"
                checked={adopt}
                disabled={busy}
                onChange={({ target }) => configure({ on: true, adopt: target.checked })}
              />{' '}
              Use the Ollama that is running at <bdi>{adoptable}</bdi> instead of starting one
            </label>
          </p>
        )}
      </Section>
      {!bundled && <Details report={report} />}
      {state.at === 'ready' && <SimilarityTest />}
      <OpenClaw ready={state.at === 'ready'} />
      {report.log.length > 0 && (
        <Section title="Recent log lines">
          <p className="quiet">Lines that could contain text sent for embedding are left out.</p>
          <pre className="output">{report.log.join('\n')}</pre>
        </Section>
      )}
      {dialog === 'approve' && <ApproveOllama report={report} close={close} />}
      {dialog === 'download' && <DownloadModel report={report} close={close} />}
    </>
  );
}

function useEmbeddingsCommands() {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, run } = useTask();
  const runAndRefresh = (work: () => Promise<unknown>): void =>
    void run(async () => {
      await work();
      refresh();
    });
  return {
    busy,
    failure,
    configure: (choice: { on: boolean; adopt?: boolean }) => runAndRefresh(() => call('setEmbeddings', choice)),
    cancelDownload: () => runAndRefresh(() => call('cancelPull', {})),
  };
}

function Details({ report: { ollama, version, model, adopt, free } }: { report: Report }) {
  return (
    <Section title="Model and program">
      <dl className="pairs">
        <dt>Model</dt>
        <dd>
          <bdi>{model.name}</bdi>
          {model.disk !== undefined && model.memory !== undefined && (
            <span className="quiet">
              , {sizeText(model.disk)} of disk space, about {sizeText(model.memory)} of RAM
            </span>
          )}
        </dd>
        {free.disk !== undefined && (
          <>
            <dt>Free</dt>
            <dd>
              {sizeText(free.disk)} of disk space{free.memory !== undefined && `, ${sizeText(free.memory)} of RAM`}
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

const needsModel = (state: Report['state']): boolean =>
  state.at === 'no_model' || (state.at === 'failed' && (state.trouble === 'pull_failed' || state.trouble === 'wrong_dimension'));
