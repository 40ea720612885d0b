import { HowToConnect } from './connect/manual.tsx';
import { describeKey } from './key-state.ts';
import { useOperation } from './memory-context.tsx';
import type { Place } from './place.ts';
import { usePolledOperation } from './polling.ts';
import { Button } from './ui/button.tsx';
import { Page, Section } from './ui/page.tsx';

const POLL_MS = 5000;

/** Returns whether the memory is empty and no client has ever used a token. */
export function useUnused(): boolean {
  const { data: status } = useOperation('status', {});
  const key = status?.store.key.at;
  const empty = status?.facts === 0 && (key === 'ok' || key === 'ephemeral');
  const { data: tokens } = usePolledOperation(
    'tokens',
    {},
    (known) => (known?.tokens.some(wasUsed) === true ? undefined : POLL_MS),
    empty,
  );
  return empty && tokens !== undefined && !tokens.tokens.some(wasUsed);
}

const wasUsed = ({ last_used_at: at }: { readonly last_used_at?: string }): boolean => at !== undefined;

/** The first screen: what Helmdeck Memory does, where the key is stored, and how to connect an agent (R-WIN-22). */
export function FirstRun({ go }: { go: (place: Place) => void }) {
  const { data: status } = useOperation('status', {});
  const { data: settings } = useOperation('settings', {});
  const key = status?.store.key;
  const state = key && describeKey(key);
  return (
    <Page title="One memory for all your agents">
      <p>
        Tell one agent something, and all of them know it.{' '}
        {status?.store.kept === 'database' ? 'Everything stays in your database.' : 'Everything stays on this computer.'} Each
        fact shows who wrote it and when it expires, and a fact that you forget is{' '}
        {status?.store.kept === 'database' ? 'deleted' : 'erased from the disk'}.
      </p>
      <Section title="Where the key is">
        {key && state && <p>{key.at === 'ok' ? `The memory is sealed. ${state.text}` : `${state.title}. ${state.text}`}</p>}
        {settings && settings.folder !== '' && status?.store.kept === 'file' && (
          <p className="quiet">
            The memory is stored in <span className="address">{settings.folder}</span>. Without the key, the memory can't be read,
            not even by you. Create a recovery key in Settings and write it down.
          </p>
        )}
      </Section>
      <Section title="Connect your first agent">
        <InstalledAgents go={go} />
        <p>Then tell the agent something to remember. The fact appears here.</p>
        <details>
          <summary>Or connect an agent by hand, in a terminal</summary>
          <HowToConnect />
        </details>
      </Section>
    </Page>
  );
}

function InstalledAgents({ go }: { go: (place: Place) => void }) {
  const { data } = useOperation('clients', {});
  const names = data?.clients.filter(({ installed }) => installed).map(({ name }) => name) ?? [];
  return (
    <>
      {names.length > 0 && <p>Found on this computer: {names.join(', ')}.</p>}
      <p className="buttons">
        <Button label="Connect an agent" look="primary" onClick={() => go({ at: 'clients' })} />
      </p>
    </>
  );
}
