import { useState } from 'react';
import type { TokenList } from '../../../contract/token.ts';
import { useMemory } from '../memory-context.tsx';
import { timeLeft, useNow } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook, useWatched } from '../watched.ts';
import { Clients } from './clients.tsx';
import { HowToConnect } from './how.tsx';
import { Mint } from './mint.tsx';

type Token = TokenList['tokens'][number];

const LOOK_MS = 5000;

/** Which programs get in, and how to let in another. */
export function ConnectPage() {
  const { ask } = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const { data, error } = useWatched('tokens', {}, () => LOOK_MS);
  const [minting, setMinting] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  useActions([{ name: 'Make a token…', run: () => setMinting(true) }]);
  const revoke = async ({ id, name }: Token): Promise<void> => {
    await ask('revokeToken', { id });
    say({ text: `${name} does not get in any more.` });
    lookAgain();
  };
  return (
    <Page
      title="Connect"
      says="Each program has a token of its own: what it writes bears its name, and it alone can be turned away."
    >
      <Clients />
      <Section title="Tokens">
        <Refused error={error} />
        <ul className="plain" aria-label="Tokens">
          {data?.tokens.map((token) => (
            <TokenLine key={token.id} token={token} revoke={() => setRevoking(token)} />
          ))}
        </ul>
        {data?.tokens.length === 0 && <p className="quiet">No program has a token yet.</p>}
        <p className="buttons">
          <button type="button" className="button" onClick={() => setMinting(true)}>
            Make a token…
          </button>
        </p>
      </Section>
      <Section title="Connect an agent by hand">
        <p className="quiet">For an agent that is not found above: paste its lines into a terminal.</p>
        <HowToConnect />
      </Section>
      {minting && <Mint close={() => setMinting(false)} made={lookAgain} />}
      {revoking && (
        <Confirm
          title={`Turn ${revoking.name} away?`}
          act="Revoke"
          run={() => revoke(revoking)}
          close={() => setRevoking(undefined)}
        >
          <p>
            Its token is of no use from now on, also after a restore. What <bdi>{revoking.client}</bdi> wrote stays.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

function TokenLine({ token, revoke }: { token: Token; revoke: () => void }) {
  const { name, client, subject, created_at: created, last_used_at: used, expires_at: expires } = token;
  const now = useNow();
  const over = Date.parse(expires) <= now;
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
          in the memory of <bdi>{subject}</bdi>
        </span>
        <br />
        <span className="quiet">
          Made <When at={created} />.{' '}
          {used === undefined ? (
            'Never used.'
          ) : (
            <>
              Last used <When at={used} />.
            </>
          )}{' '}
          {over ? (
            <span className="warned">Expired.</span>
          ) : (
            <span className={timeLeft(expires, now).soon ? 'warned' : undefined}>
              Expires <When at={expires} />.
            </span>
          )}
        </span>
      </span>
      <button type="button" className="opener" aria-label={`Revoke ${name}`} onClick={revoke}>
        Revoke…
      </button>
    </li>
  );
}
