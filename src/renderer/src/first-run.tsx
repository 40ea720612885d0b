import { HowToConnect } from './connect/how.tsx';
import { useAsked } from './memory-context.tsx';
import type { Place } from './place.ts';
import { standingOf } from './standing.ts';
import { Page, Section } from './ui/page.tsx';
import { useWatched } from './watched.ts';

const LOOK_MS = 5000;

/** Whether this memory has never been used: nothing is in it, and no program has come with a token. */
export function useUnused(): boolean {
  const { data: status } = useAsked('status', {});
  const key = status?.store.key.at;
  const empty = status?.facts === 0 && (key === 'ok' || key === 'ephemeral');
  const { data: tokens } = useWatched(
    'tokens',
    {},
    (known) => (known?.tokens.some(wasUsed) === true ? undefined : LOOK_MS),
    empty,
  );
  return empty && tokens !== undefined && !tokens.tokens.some(wasUsed);
}

const wasUsed = ({ last_used_at: at }: { readonly last_used_at?: string }): boolean => at !== undefined;

/** The first thing that anybody sees: what this is, where the key is, and how to connect an agent. */
export function FirstRun({ go }: { go: (place: Place) => void }) {
  const { data: status } = useAsked('status', {});
  const { data: settings } = useAsked('settings', {});
  const key = status?.store.key;
  return (
    <Page title="One memory for all your agents">
      <p>
        What you tell one of them, the others know as well. It stays on this computer, each fact with its author and its end, and
        what you forget is gone.
      </p>
      <Section title="Where the key is">
        {key && (
          <p>
            {key.at === 'ok'
              ? `Everything is sealed. ${standingOf(key).says}`
              : `${standingOf(key).title}. ${standingOf(key).says}`}
          </p>
        )}
        {settings && settings.folder !== '' && status?.store.kept === 'file' && (
          <p className="quiet">
            The memory itself lies in <span className="address">{settings.folder}</span>. Without the key nobody can read it, you
            included: make a recovery key in Settings, and write it down.
          </p>
        )}
      </Section>
      <Section title="Connect your first agent">
        <FoundHere go={go} />
        <p>Then tell it something worth keeping. It appears here by itself.</p>
        <details>
          <summary>Or connect one by hand, in a terminal</summary>
          <HowToConnect />
        </details>
      </Section>
    </Page>
  );
}

/** What can be connected without typing anything. */
function FoundHere({ go }: { go: (place: Place) => void }) {
  const { data } = useAsked('clients', {});
  const names = data?.clients.filter(({ installed }) => installed).map(({ name }) => name) ?? [];
  return (
    <>
      {names.length > 0 && <p>Found on this machine: {names.join(', ')}.</p>}
      <p className="buttons">
        <button type="button" className="button primary" onClick={() => go({ at: 'clients' })}>
          Connect an agent
        </button>
      </p>
    </>
  );
}
