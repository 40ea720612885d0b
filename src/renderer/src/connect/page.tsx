import { useState } from 'react';
import type { TokenList } from '../../../contract/token.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { timeLeft, useNow } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Page, Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { Clients } from './clients.tsx';
import { CreateToken } from './create-token.tsx';
import { HowToConnect } from './manual.tsx';

type Token = TokenList['tokens'][number];

const POLL_MS = 5000;

export function ConnectPage() {
  return (
    <Page
      title="Connect"
      description="Each program has its own token, so Helmdeck Memory can record which program wrote a fact. You can revoke a token at any time."
    >
      <Clients />
      <Tokens />
      <Section title="Connect an agent by hand">
        <p className="quiet">If an agent is not listed above, connect it by running its commands in a terminal.</p>
        <HowToConnect />
      </Section>
    </Page>
  );
}

function Tokens() {
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const { data, error } = usePolledOperation('tokens', {}, () => POLL_MS);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  useActions([{ name: 'Create a token…', run: () => setCreating(true) }]);
  const revoke = async ({ id, name }: Token): Promise<void> => {
    await call('revokeToken', { id });
    showToast({ text: `${name} no longer has access.` });
    refresh();
  };
  return (
    <Section title="Tokens">
      <LoadError error={error} />
      <ul className="plain" aria-label="Tokens">
        {data?.tokens.map((token) => (
          <TokenLine key={token.id} token={token} revoke={() => setRevoking(token)} />
        ))}
      </ul>
      {data?.tokens.length === 0 && <p className="quiet">No tokens yet.</p>}
      <p className="buttons">
        <Button label="Create a token…" onClick={() => setCreating(true)} />
      </p>
      {creating && <CreateToken close={() => setCreating(false)} onCreated={refresh} />}
      {revoking && (
        <Confirm
          title={`Revoke the token ${revoking.name}?`}
          button="Revoke"
          run={() => revoke(revoking)}
          close={() => setRevoking(undefined)}
        >
          <p>
            The token stops working immediately, and restoring a backup will not make it valid again. The facts that{' '}
            <bdi>{revoking.client}</bdi> wrote stay.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function TokenLine({ token, revoke }: { token: Token; revoke: () => void }) {
  const { name, client, subject, created_at: created, last_used_at: used, expires_at: expires, quarantined } = token;
  const now = useNow();
  const isExpired = Date.parse(expires) <= now;
  return (
    <li className="line">
      <span>
        <strong>
          <bdi>{name}</bdi>
        </strong>{' '}
        <span className="quiet">
          {name !== client && (
            <>
              <bdi>{client}</bdi>,{' '}
            </>
          )}
          memory of <bdi>{subject}</bdi>
        </span>
        <br />
        <span className="quiet">
          Created <When at={created} />.{' '}
          {used === undefined ? (
            'Never used.'
          ) : (
            <>
              Last used <When at={used} />.
            </>
          )}{' '}
          {isExpired ? (
            <span className="warned">Expired.</span>
          ) : (
            <span className={timeLeft(expires, now).soon ? 'warned' : undefined}>
              Expires <When at={expires} />.
            </span>
          )}
          {quarantined && ' In quarantine.'}
        </span>
      </span>
      <Button label="Revoke…" look="link" aria-label={`Revoke ${name}`} onClick={revoke} />
    </li>
  );
}
