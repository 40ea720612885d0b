import { useState } from 'react';
import type { WindowSession } from '../../../contract/window-session.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';

const POLL_MS = 5000;

/** Lists the browser sessions of this window. The desktop app is not listed (R-WIN-46). */
export function SessionsSection() {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { data, error } = usePolledOperation('windowSessions', {}, () => POLL_MS);
  const [ending, setEnding] = useState<WindowSession>();
  if (!error && !data?.sessions.length) return undefined;
  const end = async ({ id }: WindowSession): Promise<void> => {
    await call('endWindowSession', { id });
    refresh();
  };
  return (
    <Section title="Browser sessions">
      <LoadError error={error} />
      <ul className="plain" aria-label="Browser sessions">
        {data?.sessions.map((session) => (
          <li key={session.id} className="line">
            <span>
              <strong>
                <bdi>{session.browser}</bdi>
              </strong>
              <br />
              <span className="quiet">
                Opened <When at={session.opened_at} />. Last used <When at={session.last_used_at} />. Expires{' '}
                <When at={session.expires_at} />.
              </span>
            </span>
            <Button label="End…" look="link" aria-label={`End ${session.browser}`} onClick={() => setEnding(session)} />
          </li>
        ))}
      </ul>
      {ending && (
        <Confirm
          title={`End the session of ${ending.browser}?`}
          button="End session"
          run={() => end(ending)}
          close={() => setEnding(undefined)}
        >
          <p>
            The window closes in that browser immediately. If you are using that browser now, you need a new link to open the
            window again.
          </p>
        </Confirm>
      )}
    </Section>
  );
}
