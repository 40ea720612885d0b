import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { useActions } from '../ui/actions.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook, useWatched } from '../watched.ts';

/** That nothing is lost: copies, and a look at every seal. */
export function SafetySection() {
  const { ask } = useMemory();
  const lookAgain = useFreshLook();
  const { data, error } = useWatched('backups', {}, () => undefined);
  const { data: settings } = useAsked('settings', {});
  const copying = useDoing();
  const verifying = useDoing();
  const [made, setMade] = useState<OperationOutput<'backup'>>();
  const [verified, setVerified] = useState<OperationOutput<'verify'>>();
  const backUp = (): void =>
    void copying.run(async () => {
      setMade(await ask('backup', {}));
      lookAgain();
    });
  const verify = (): void => void verifying.run(async () => setVerified(await ask('verify', {})));
  useActions([
    { name: 'Back up now', run: backUp },
    { name: 'Verify the memory', run: verify },
  ]);
  return (
    <Section title="Safety">
      <Refused error={error} />
      <p className="quiet">
        A backup is a complete copy, sealed like the memory. A copy on another disk also protects against the loss of this one. To
        restore one, end the program and run <code>{settings?.command ?? 'helmdeck-memory'} restore</code>.
      </p>
      <p className="buttons">
        <button type="button" className="button" disabled={copying.busy} onClick={backUp}>
          Back up now
        </button>
        <button type="button" className="button" disabled={verifying.busy} onClick={verify}>
          Verify
        </button>
      </p>
      <div role="status">
        {copying.busy && <p>Writing a copy, and opening every seal in it…</p>}
        {made && (
          <p>Backed up and verified.{made.broken > 0 && ` ${counted(made.broken, 'damaged entry')}, here as in the copy.`}</p>
        )}
        {verifying.busy && <p>Opening every seal…</p>}
        {verified && <p className={sound(verified) ? undefined : 'warned'}>{verdictOf(verified)}</p>}
      </div>
      <Failed text={copying.failure ?? verifying.failure} />
      {data?.backups.length === 0 && <p className="quiet">There is no backup yet.</p>}
      <ul className="plain" aria-label="Backups">
        {data?.backups.map(({ file, at }) => (
          <li key={file} className="line">
            <span className="address">{file}</span>
            <span className="quiet">
              <When at={at} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

const sound = ({ broken, structure }: OperationOutput<'verify'>): boolean => broken === 0 && structure.length === 0;

function verdictOf(verified: OperationOutput<'verify'>): string {
  const { entries, broken, structure } = verified;
  if (sound(verified)) return `All ${counted(entries, 'entry')} are whole.`;
  const parts = [
    ...(broken > 0
      ? [`${counted(broken, 'entry')} of ${(entries + broken).toLocaleString()} are damaged and left out of every answer.`]
      : []),
    ...structure,
  ];
  return `${parts.join(' ')} A backup that is whole brings them back.`;
}
