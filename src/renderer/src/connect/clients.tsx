import { useState } from 'react';
import type { ClientRow } from '../../../contract/client.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { EMBEDDINGS_ROW } from './choices.tsx';
import { ConnectDialog } from './connect-dialog.tsx';
import { PacksDialog } from './packs-dialog.tsx';
import { PromptsDialog } from './prompts-dialog.tsx';

const POLL_MS = 5000;

type DialogKind = 'connect' | 'disconnect' | 'packs' | 'prompts' | 'revoke';

/** Lists the agents on this computer, with the state of each agent and the actions for that state (R-CONN-11). */
export function Clients() {
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const { data, error } = usePolledOperation('clients', {}, () => POLL_MS);
  const [dialog, setDialog] = useState<{ readonly kind: DialogKind; readonly client: ClientRow }>();
  const close = (): void => setDialog(undefined);
  const installed = data?.clients.filter(({ state }) => state !== 'not_installed') ?? [];
  const missing = data?.clients.filter(({ id, state }) => state === 'not_installed' && id !== EMBEDDINGS_ROW) ?? [];
  const disconnect = async ({ id, name }: ClientRow): Promise<void> => {
    const { files } = await call('disconnectClient', { client: id });
    const restored = files.every(({ as_before: asBefore }) => asBefore);
    showToast({
      text: restored
        ? `${name} is disconnected, and its configuration is restored.`
        : `${name} is disconnected. Its configuration was changed after you connected it, so only the entry for Helmdeck Memory was removed.`,
    });
    refresh();
  };
  const revoke = async ({ name, token }: ClientRow): Promise<void> => {
    if (token) await call('revokeToken', { id: token.id });
    showToast({ text: `${name} no longer has access.` });
    refresh();
  };
  if (data?.clients.length === 0) return undefined;
  return (
    <Section title="Agents on this computer">
      <LoadError error={error} />
      <ul className="plain" aria-label="Agents">
        {installed.map((client) => (
          <ClientLine key={client.id} client={client} openDialog={(kind) => setDialog({ kind, client })} />
        ))}
      </ul>
      {missing.length > 0 && (
        <p className="quiet missing">
          Not found: {missing.map(({ name }) => name).join(', ')}. An agent appears here once it is installed.
        </p>
      )}
      {dialog?.kind === 'connect' && <ConnectDialog client={dialog.client} close={close} />}
      {dialog?.kind === 'prompts' && <PromptsDialog client={dialog.client} close={close} />}
      {dialog?.kind === 'packs' && <PacksDialog client={dialog.client} close={close} />}
      {dialog?.kind === 'disconnect' && (
        <Confirm
          title={`Disconnect ${dialog.client.name}?`}
          button="Disconnect"
          run={() => disconnect(dialog.client)}
          close={close}
        >
          <p>
            {dialog.client.server === undefined ? (
              'The token of the agent will be revoked'
            ) : (
              <>
                The token of the agent will be deleted from this computer, but it stays valid on <bdi>{dialog.client.server}</bdi>{' '}
                until its admin revokes it
              </>
            )}
            . The entry for Helmdeck Memory will be removed from <span className="address">{dialog.client.config}</span>. Other
            changes in that file stay. The facts that the agent wrote stay too.
          </p>
        </Confirm>
      )}
      {dialog?.kind === 'revoke' && (
        <Confirm title={`Revoke ${dialog.client.name}'s access?`} button="Revoke" run={() => revoke(dialog.client)} close={close}>
          <p>
            The token of the agent stops working immediately, and restoring a backup will not make the token valid again. The
            configuration of the agent stays unchanged.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function ClientLine({ client, openDialog }: { client: ClientRow; openDialog: (kind: DialogKind) => void }) {
  const { id, name, version, state, subject, token, server, hooks, capture } = client;
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const { busy, failure, run } = useTask();
  const setPaused = (paused: boolean): void => {
    if (!token) return;
    void run(async () => {
      await call('pauseToken', { id: token.id, paused });
      showToast({ text: paused ? `${name} is paused. It has no access until you resume it.` : `${name} has access again.` });
      refresh();
    });
  };
  const test = (): void => {
    void run(async () => {
      const { works, why = '', tools } = await call('verifyClient', { client: id });
      showToast({ text: works ? `Connection to ${name} tested: ${tools} tools.` : `${name} can't connect. ${why}` });
      refresh();
    });
  };
  // True if Helmdeck Memory never connected this client, so an existing configuration entry comes from the owner.
  const isForeign = state === 'not_connected' || (state === 'differs' && subject === undefined);
  return (
    <li className="line agent">
      <span>
        <strong>{name}</strong> {version !== undefined && <span className="quiet">{version}</span>}
        <br />
        <span className="quiet">
          <ClientState client={client} />
        </span>
        <ErrorText text={failure} />
      </span>
      <span className="row-actions">
        {state === 'connected' ? (
          <>
            <Button label="Test" look="link" disabled={busy} aria-label={`Test ${name}`} onClick={test} />
            {token && (
              <Button
                label={token.paused ? 'Resume' : 'Pause'}
                look="link"
                disabled={busy}
                aria-label={token.paused ? `Resume ${name}` : `Pause ${name}`}
                onClick={() => setPaused(!token.paused)}
              />
            )}
            {id !== EMBEDDINGS_ROW && server === undefined && (
              <Button label="Packs…" look="link" aria-label={`Packs for ${name}`} onClick={() => openDialog('packs')} />
            )}
            {id !== EMBEDDINGS_ROW && server === undefined && (
              <Button label="Change…" look="link" aria-label={`Change ${name}`} onClick={() => openDialog('connect')} />
            )}
            {server === undefined && (capture || hooks?.events.includes('prompt')) && (
              <Button label="Prompts…" look="link" aria-label={`Prompts to ${name}`} onClick={() => openDialog('prompts')} />
            )}
            {server === undefined && (
              <Button
                label="Revoke…"
                look="link"
                aria-label={`Revoke the token of ${name}`}
                onClick={() => openDialog('revoke')}
              />
            )}
          </>
        ) : (
          <Button
            label={isForeign ? 'Connect…' : 'Repair…'}
            aria-label={`${isForeign ? 'Connect' : 'Repair'} ${name}`}
            onClick={() => openDialog('connect')}
          />
        )}
        {!isForeign && (
          <Button label="Disconnect…" look="link" aria-label={`Disconnect ${name}`} onClick={() => openDialog('disconnect')} />
        )}
      </span>
    </li>
  );
}

const PROBLEMS: Readonly<Partial<Record<ClientRow['state'], string>>> = {
  differs: 'The configuration has a different entry for Helmdeck Memory.',
  wiped: 'The entry for Helmdeck Memory is missing from the configuration.',
  no_token: "The agent's token was revoked or has expired.",
};

function ClientState({ client }: { client: ClientRow }) {
  const { state, why, transport, subject, token, packs, server, capture, accept } = client;
  const problem = why ?? PROBLEMS[state];
  if (problem !== undefined) return <span className="warned">{problem}</span>;
  if (state !== 'connected') return 'Not connected.';
  if (server !== undefined) {
    return (
      <>
        Connected over {transport} to the memory of <bdi>{subject}</bdi> on <bdi>{server}</bdi>.
      </>
    );
  }
  return (
    <>
      {token?.paused && <span className="warned">Paused. The agent has no access until you resume it. </span>}
      Connected over {transport} to the memory of <bdi>{subject}</bdi>.{' '}
      {token?.last_used_at === undefined ? (
        'Never used.'
      ) : (
        <>
          Last used <When at={token.last_used_at} />.
        </>
      )}
      {token?.quarantined && ' In quarantine: its changes wait in the Inbox.'}
      <HookState client={client} />
      {capture && ` ${accept ? 'Facts from your prompts are stored at once.' : 'Facts from your prompts wait in the Inbox.'}`}
      {packs && ` Offered ${packs.length === 0 ? 'no packs' : packs.length === 1 ? 'one pack' : `${packs.length} packs`}.`}
    </>
  );
}

const MOMENTS = { session: 'at the start of a session', prompt: 'before each prompt' } as const;

/** Says when the agent is shown facts, and what keeps the hooks from running. */
function HookState({ client: { name, hooks } }: { client: ClientRow }) {
  if (!hooks || hooks.state === 'off') return undefined;
  if (hooks.why !== undefined) return <span className="warned"> {hooks.why}</span>;
  if (hooks.state === 'waits_for_review') {
    return <span className="warned"> Its hooks wait for your review: {name} asks you when you start it.</span>;
  }
  return ` Shown facts ${hooks.events.map((event) => MOMENTS[event]).join(' and ')}.`;
}
