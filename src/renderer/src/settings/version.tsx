import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';

/** Shows the installed version. Helmdeck Memory checks for updates only when the owner presses the button (R-NEWS-01). */
export function VersionSection({ place }: { place: string | undefined }) {
  const { data: status } = useOperation('status', {});
  return (
    <Section title="Version">
      <p>Helmdeck Memory {status?.versions.program}</p>
      {place === undefined ? (
        <p className="quiet">This build can't check for updates. Look for a new version where you got this one.</p>
      ) : (
        <UpdateCheck place={place} />
      )}
    </Section>
  );
}

function UpdateCheck({ place }: { place: string }) {
  const { call } = useMemory();
  const { busy, failure, run } = useTask();
  const [result, setResult] = useState<OperationOutput<'checkForUpdates'>>();
  const check = (): void => {
    setResult(undefined);
    void run(async () => setResult(await call('checkForUpdates', {})));
  };
  useActions([{ name: 'Check for updates', run: check }]);
  return (
    <>
      <p className="quiet">
        The program contacts <span className="address">{place}</span> only when you press this button.
      </p>
      <p className="buttons">
        <Button label="Check for updates" disabled={busy} onClick={check} />
      </p>
      <div role="status">
        {busy && <p>Checking…</p>}
        {result && <p>{result.newer ? `Version ${result.newer.version} is available.` : 'You have the latest version.'}</p>}
      </div>
      {result?.newer && <Copyable text={result.newer.url} name="the link" />}
      <ErrorText text={failure} />
    </>
  );
}
