import { useState } from 'react';
import type { WindowSession } from '../../../contract/window-session.ts';
import { useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook, useWatched } from '../watched.ts';

const LOOK_MS = 5000;

/** Browsers that have this window open. The desktop has none, unless the owner opens it in a browser elsewhere. */
export function SessionsSection() {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const { data, error } = useWatched('windowSessions', {}, () => LOOK_MS);
  const [ending, setEnding] = useState<WindowSession>();
  if (!error && !data?.sessions.length) return undefined;
  const end = async ({ id }: WindowSession): Promise<void> => {
    await ask('endWindowSession', { id });
    lookAgain();
  };
  return (
    <Section title="Browser sessions">
      <Refused error={error} />
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
            <button type="button" className="opener" aria-label={`End ${session.browser}`} onClick={() => setEnding(session)}>
              End…
            </button>
          </li>
        ))}
      </ul>
      {ending && (
        <Confirm
          title={`End the session of ${ending.browser}?`}
          act="End Session"
          run={() => end(ending)}
          close={() => setEnding(undefined)}
        >
          <p>The window closes there at once. If this is your own browser, you need a new link to open it again.</p>
        </Confirm>
      )}
    </Section>
  );
}
