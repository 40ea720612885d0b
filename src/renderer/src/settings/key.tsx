import { useState } from 'react';
import { describeKey } from '../key-state.ts';
import { useDesktopConfirms, useMemory, useOperation } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { CloseButton, Dialog } from '../ui/dialog.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';

export function KeySection() {
  const { data: status, error } = useOperation('status', {});
  const { data: backups } = usePolledOperation('backups', {});
  const commands = useKeyCommands();
  const desktopConfirms = useDesktopConfirms();
  const [dialog, setDialog] = useState<'rotate' | 'recovery'>();
  const close = (): void => setDialog(undefined);
  const key = status?.store.key;
  const rotation = status?.store.rotation;
  const isOpen = key?.at === 'ok';
  const hasRecoveryKey = backups?.recovery_key === true;
  useActions(isOpen ? [{ name: 'Lock the memory', run: commands.lock }] : []);
  const rotate = (): void => {
    close();
    commands.rotate();
  };
  return (
    <Section title="Key">
      <LoadError error={error} />
      {key && (
        <p role="status">
          {describeKey(key).title}. {describeKey(key).text}
        </p>
      )}
      {key && key.at !== 'ephemeral' && (
        <>
          <p className="quiet">
            {hasRecoveryKey
              ? 'You have a recovery key. If you create a new recovery key, the current one stops working.'
              : "You have no recovery key. If you lose the key, this memory can't be opened."}
          </p>
          <p className="buttons">
            <Button
              label={isOpen ? 'Lock' : 'Unlock'}
              disabled={commands.locking}
              onClick={isOpen ? commands.lock : commands.unlock}
            />
            {isOpen && (
              <>
                <Button
                  label="Create a recovery key…"
                  onClick={() => (desktopConfirms ? commands.runRecovery() : setDialog('recovery'))}
                />
                <Button
                  label="Rotate the key…"
                  disabled={commands.rotating || rotation?.at === 'running'}
                  onClick={() => (desktopConfirms ? rotate() : setDialog('rotate'))}
                />
              </>
            )}
          </p>
        </>
      )}
      {rotation?.at === 'running' && (
        <progress aria-label="Entries with the new key" max={Math.max(1, rotation.of)} value={rotation.done} />
      )}
      <ErrorText text={commands.failure} />
      {dialog === 'rotate' && (
        <Confirm title="Rotate the key?" button="Rotate" harmless run={() => Promise.resolve(rotate())} close={close}>
          <p>
            All entries will be sealed with a new key. You can use the memory during the rotation. Existing backups still need the
            old key or the recovery key. The recovery key stays valid.
          </p>
        </Confirm>
      )}
      {dialog === 'recovery' && (
        <Confirm title="Create a recovery key?" button="Create" harmless run={commands.createRecoveryKey} close={close}>
          <p>
            If the key is lost, the recovery key opens this memory, even on another computer. The recovery key is shown only once,
            so have pen and paper ready.
          </p>
          {hasRecoveryKey && <p className="warned">Your current recovery key will stop working.</p>}
        </Confirm>
      )}
      {commands.recoveryKey !== undefined && (
        <Dialog title="Your recovery key" close={commands.hideRecoveryKey}>
          <p>Write the recovery key down now and keep it in a safe place. The key is shown only once and is not stored.</p>
          <Copyable text={commands.recoveryKey} name="the recovery key" />
          <CloseButton label="I have written it down" primary />
        </Dialog>
      )}
    </Section>
  );
}

function useKeyCommands() {
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const [recoveryKey, setRecoveryKey] = useState<string>();
  const locking = useTask();
  const rotating = useTask();
  const creating = useTask();
  const callAndRefresh = async (name: 'lock' | 'unlock'): Promise<void> => {
    await call(name, {});
    refresh();
  };
  const createRecoveryKey = async (): Promise<void> => {
    setRecoveryKey((await call('makeRecoveryKey', {})).recovery_key);
    refresh();
  };
  return {
    locking: locking.busy,
    rotating: rotating.busy,
    failure: locking.failure ?? rotating.failure ?? creating.failure,
    recoveryKey,
    hideRecoveryKey: () => setRecoveryKey(undefined),
    lock: () => void locking.run(() => callAndRefresh('lock')),
    unlock: () => void locking.run(() => callAndRefresh('unlock')),
    /** Throws on failure, because the dialog that calls this function reports failures itself. */
    createRecoveryKey,
    runRecovery: () => void creating.run(createRecoveryKey),
    rotate: () =>
      void rotating.run(async () => {
        const done = call('rotateKey', {});
        // Refresh, so that the banner shows the progress of the rotation.
        refresh();
        await done;
        showToast({ text: 'The key has been rotated.' });
        refresh();
      }),
  };
}
