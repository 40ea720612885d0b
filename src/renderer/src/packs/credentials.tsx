import { useState } from 'react';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { Confirm, DialogButtons, useConfirmed } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText, LoadError } from '../ui/errors.tsx';
import { TextField } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';

const SOURCES = { settings: 'from a setting', keychain: 'in the keychain' } as const;

/** Lists the credentials that packs use for other services. Secrets are never shown. */
export function Credentials() {
  const { call } = useMemory();
  const confirmed = useConfirmed();
  const refresh = useRefresh();
  const { data, error } = useOperation('credentials', {});
  const [setting, setSetting] = useState<string>();
  const [removing, setRemoving] = useState<string>();
  if (data && data.credentials.length === 0) return undefined;
  const remove = async (name: string): Promise<void> => {
    await call('dropCredential', { name });
    refresh();
  };
  const startRemoving = (name: string): void =>
    confirmed(
      () => remove(name),
      () => setRemoving(name),
    );
  return (
    <Section title="Credentials">
      <LoadError error={error} />
      <ul className="plain">
        {data?.credentials.map(({ name, packs, kept_in: source, set_at: at }) => (
          <li key={name} className="line">
            <span>
              <bdi>{name}</bdi> <span className="quiet">for {packs.join(', ')}</span>
            </span>
            <span className="quiet">
              {source === undefined ? 'not set' : SOURCES[source]}
              {at !== undefined && (
                <>
                  , since <When at={at} />
                </>
              )}{' '}
              {source !== 'settings' && (
                <Button label="Set…" look="link" aria-label={`Set ${name}`} onClick={() => setSetting(name)} />
              )}{' '}
              {source === 'keychain' && (
                <Button label="Remove…" look="link" aria-label={`Remove ${name}`} onClick={() => startRemoving(name)} />
              )}
            </span>
          </li>
        ))}
      </ul>
      {setting !== undefined && <SetCredential name={setting} close={() => setSetting(undefined)} />}
      {removing !== undefined && (
        <Confirm
          title={`Remove the credential ${removing}?`}
          button="Remove"
          run={() => remove(removing)}
          close={() => setRemoving(undefined)}
        >
          <p>
            The credential will be deleted from the keychain. Cached results that used the credential will be deleted too. You
            can't undo this.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function SetCredential({ name, close }: { name: string; close: () => void }) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const { busy, failure, submit } = useTask({ secret: 'Secret' });
  const [secret, setSecret] = useState('');
  const onSubmit = submit(async () => {
    await call('setCredential', { name, secret });
    close();
    showToast({ text: 'Saved in the keychain.' }, 4000);
    refresh();
  });
  return (
    <Dialog title={`Set the credential ${name}`} close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <TextField
          label="Secret"
          hint="The secret is stored in this computer's keychain and never shown again."
          required
          secret
          value={secret}
          change={setSecret}
        />
        <ErrorText text={failure} />
        <DialogButtons close={close}>
          <Button label="Save" type="submit" look="primary" disabled={busy} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
