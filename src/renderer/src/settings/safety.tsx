import { useState } from 'react';
import type { OperationOutput } from '../../../contract/operations.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { counted } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { When } from '../ui/when.tsx';

type Verification = OperationOutput<'verify'>;

export function SafetySection() {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { data, error } = usePolledOperation('backups', {});
  const { data: settings } = useOperation('settings', {});
  const backup = useTask();
  const verification = useTask();
  const [made, setMade] = useState<OperationOutput<'backup'>>();
  const [verified, setVerified] = useState<Verification>();
  const backUp = (): void =>
    void backup.run(async () => {
      setMade(await call('backup', {}));
      refresh();
    });
  const verify = (): void => void verification.run(async () => setVerified(await call('verify', {})));
  useActions([
    { name: 'Back up now', run: backUp },
    { name: 'Verify the memory', run: verify },
  ]);
  return (
    <Section title="Safety">
      <LoadError error={error} />
      <p className="quiet">
        A backup is a complete sealed copy. Copy it to another disk to protect it from a disk failure. To restore a backup, quit
        Helmdeck Memory and run <code>{settings?.command ?? 'helmdeck-memory'} restore</code>.
      </p>
      <p className="buttons">
        <Button label="Back up now" disabled={backup.busy} onClick={backUp} />
        <Button label="Verify" disabled={verification.busy} onClick={verify} />
      </p>
      <div role="status">
        {backup.busy && <p>Writing and verifying a backup…</p>}
        {made && (
          <p>
            Backed up and verified.
            {made.broken > 0 && ` The memory and the backup contain ${counted(made.broken, 'damaged entry')}.`}
          </p>
        )}
        {verification.busy && <p>Verifying all entries…</p>}
        {verified && <p className={isSound(verified) ? undefined : 'warned'}>{verdict(verified)}</p>}
      </div>
      <ErrorText text={backup.failure ?? verification.failure} />
      {data?.backups.length === 0 && <p className="quiet">No backups yet.</p>}
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

const isSound = ({ broken, structure }: Verification): boolean => broken === 0 && structure.length === 0;

function verdict(verified: Verification): string {
  const { entries, broken, structure } = verified;
  if (isSound(verified)) return `${counted(entries, 'entry')} verified.`;
  const total = (entries + broken).toLocaleString();
  const damage = `${broken.toLocaleString()} of ${total} entries ${broken === 1 ? 'is' : 'are'} damaged and can't be read.`;
  return [...(broken > 0 ? [damage] : []), ...structure, 'Restore an undamaged backup to repair the memory.'].join(' ');
}
