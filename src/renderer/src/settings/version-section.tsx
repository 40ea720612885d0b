import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { useActions } from '../ui/actions.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/refused.tsx';

/** Which version runs, and whether there is a newer one: asked when a button is pressed, and never else (R-NEWS-01). */
export function VersionSection({ place }: { place: string | undefined }) {
  const { data: status } = useAsked('status', {});
  return (
    <Section title="Version">
      <p>Helmdeck Memory {status?.versions.program}</p>
      {place === undefined ? (
        <p className="quiet">This build has no place to ask for a newer version; compare it where you got it.</p>
      ) : (
        <Check place={place} />
      )}
    </Section>
  );
}

function Check({ place }: { place: string }) {
  const { ask } = useMemory();
  const { busy, failure, run } = useDoing();
  const [found, setFound] = useState<OperationOutput<'checkForUpdates'>>();
  const check = (): void => {
    setFound(undefined);
    void run(async () => setFound(await ask('checkForUpdates', {})));
  };
  useActions([{ name: 'Check for updates', run: check }]);
  return (
    <>
      <p className="quiet">
        Whether there is a newer one is asked of <span className="address">{place}</span> when you press this, and at no other
        time.
      </p>
      <p className="buttons">
        <button type="button" className="button" disabled={busy} onClick={check}>
          Check for updates
        </button>
      </p>
      <div role="status">
        {busy && <p>Asking…</p>}
        {found && <p>{found.newer ? `${found.newer.version} is available.` : 'You have the newest version.'}</p>}
      </div>
      {found?.newer && <Copyable text={found.newer.url} name="the link" />}
      <Failed text={failure} />
    </>
  );
}
