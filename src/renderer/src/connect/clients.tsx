import { useState } from 'react';
import type { ClientRow } from '../../../contract/client.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook, useWatched } from '../watched.ts';
import { Connecting } from './connecting.tsx';

const LOOK_MS = 5000;

type Asked = { readonly what: 'connect' | 'disconnect' | 'revoke'; readonly client: ClientRow } | undefined;

/** The agents on this machine, how each of them stands, and what can be done about it. */
export function Clients() {
  const { ask } = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const { data, error } = useWatched('clients', {}, () => LOOK_MS);
  const [asked, setAsked] = useState<Asked>();
  const close = (): void => setAsked(undefined);
  const here = data?.clients.filter(({ state }) => state !== 'not_installed') ?? [];
  // Without OpenClaw there is no search of its own either.
  const missing = data?.clients.filter(({ id, state }) => state === 'not_installed' && id !== 'openclaw-embeddings') ?? [];
  const disconnect = async ({ id, name }: ClientRow): Promise<void> => {
    const { files } = await ask('disconnectClient', { client: id });
    const changed = files.some(({ as_before: asBefore }) => !asBefore);
    say({
      text: changed
        ? `${name} is not connected any more. Its configuration was changed since, so only our entry was taken out.`
        : `${name} is not connected any more, and its configuration is as it was before.`,
    });
    lookAgain();
  };
  const revoke = async ({ name, token }: ClientRow): Promise<void> => {
    if (token) await ask('revokeToken', { id: token.id });
    say({ text: `${name} does not get in any more.` });
    lookAgain();
  };
  if (data?.clients.length === 0) return undefined;
  return (
    <Section title="Agents on this machine">
      <Refused error={error} />
      <ul className="plain" aria-label="Agents">
        {here.map((client) => (
          <ClientLine key={client.id} client={client} ask={(what) => setAsked({ what, client })} />
        ))}
      </ul>
      {missing.length > 0 && (
        <p className="quiet missing">
          Not found here: {missing.map(({ name }) => name).join(', ')}. One that is installed appears by itself.
        </p>
      )}
      {asked?.what === 'connect' && <Connecting client={asked.client} close={close} />}
      {asked?.what === 'disconnect' && (
        <Confirm title={`Disconnect ${asked.client.name}?`} act="Disconnect" run={() => disconnect(asked.client)} close={close}>
          <p>
            Its token is revoked, and <span className="address">{asked.client.config}</span> becomes what it was before; what
            others changed there since stays. What it wrote into this memory stays too.
          </p>
        </Confirm>
      )}
      {asked?.what === 'revoke' && (
        <Confirm title={`Turn ${asked.client.name} away?`} act="Revoke" run={() => revoke(asked.client)} close={close}>
          <p>Its token is of no use from now on, also after a restore. Its configuration stays as it is.</p>
        </Confirm>
      )}
    </Section>
  );
}

function ClientLine({ client, ask }: { client: ClientRow; ask: (what: 'connect' | 'disconnect' | 'revoke') => void }) {
  const { id, name, version, state, subject, token } = client;
  const memory = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const { busy, failure, run } = useDoing();
  const pause = (paused: boolean): void => {
    if (!token) return;
    void run(async () => {
      await memory.ask('pauseToken', { id: token.id, paused });
      say({ text: paused ? `${name} is refused until you let it in again.` : `${name} gets in again.` });
      lookAgain();
    });
  };
  const tryIt = (): void => {
    void run(async () => {
      const { works, why = '', tools } = await memory.ask('verifyClient', { client: id });
      say({ text: works ? `${name} comes through, and is offered ${tools} tools.` : `${name} does not come through. ${why}` });
      lookAgain();
    });
  };
  // An entry under our name where nothing was ever connected is its owner's own.
  const ours = state !== 'not_connected' && !(state === 'differs' && subject === undefined);
  return (
    <li className="line">
      <span>
        <strong>{name}</strong> {version !== undefined && <span className="quiet">{version}</span>}
        <br />
        <span className="quiet">
          <Standing client={client} />
        </span>
        <Failed text={failure} />
      </span>
      <span className="deeds">
        {state === 'connected' ? (
          <>
            <button type="button" className="opener" disabled={busy} aria-label={`Try ${name}`} onClick={tryIt}>
              Try
            </button>
            {token && (
              <button
                type="button"
                className="opener"
                disabled={busy}
                aria-label={token.paused ? `Let ${name} in again` : `Pause ${name}`}
                onClick={() => pause(!token.paused)}
              >
                {token.paused ? 'Let in again' : 'Pause'}
              </button>
            )}
            <button type="button" className="opener" aria-label={`Revoke the token of ${name}`} onClick={() => ask('revoke')}>
              Revoke…
            </button>
          </>
        ) : (
          <button
            type="button"
            className="button"
            aria-label={`${ours ? 'Repair' : 'Connect'} ${name}`}
            onClick={() => ask('connect')}
          >
            {ours ? 'Repair…' : 'Connect…'}
          </button>
        )}
        {ours && (
          <button type="button" className="opener" aria-label={`Disconnect ${name}`} onClick={() => ask('disconnect')}>
            Disconnect…
          </button>
        )}
      </span>
    </li>
  );
}

const TROUBLES: Readonly<Partial<Record<ClientRow['state'], string>>> = {
  differs: 'It has an entry of our name that is not the one that was put there.',
  wiped: 'Its entry has gone from its configuration.',
  no_token: 'Its token was revoked or has expired.',
};

function Standing({ client }: { client: ClientRow }) {
  const { state, why, transport, subject, token } = client;
  const trouble = why ?? TROUBLES[state];
  if (trouble !== undefined) return <span className="warned">{trouble}</span>;
  if (state !== 'connected') return 'Not connected.';
  return (
    <>
      {token?.paused && <span className="warned">Paused: it is refused until you let it in again. </span>}
      Connected over {transport} to the memory of <bdi>{subject}</bdi>.{' '}
      {token?.last_used_at === undefined ? (
        'Never used.'
      ) : (
        <>
          Last used <When at={token.last_used_at} />.
        </>
      )}
    </>
  );
}
