import { type FormEvent, useState } from 'react';
import { useDoing } from '../doing.ts';
import { useAsked, useIsAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { TextField } from '../ui/text-field.tsx';
import { useToast } from '../ui/toast.tsx';
import { When } from '../ui/when.tsx';
import { useFreshLook } from '../watched.ts';

/** What packs may use at services outside. No secret is ever shown. */
export function Credentials() {
  const { ask } = useMemory();
  const { say } = useToast();
  const isAsked = useIsAsked();
  const lookAgain = useFreshLook();
  const { data, error } = useAsked('credentials', {});
  const [setting, setSetting] = useState<string>();
  const [dropping, setDropping] = useState<string>();
  if (data && data.credentials.length === 0) return undefined;
  const drop = async (name: string): Promise<void> => {
    await ask('dropCredential', { name });
    lookAgain();
  };
  const startDropping = (name: string): void => {
    if (isAsked) drop(name).catch((refused: Error) => say({ text: refused.message }));
    else setDropping(name);
  };
  return (
    <Section title="Credentials">
      <Refused error={error} />
      <ul className="plain">
        {data?.credentials.map(({ name, packs, kept_in: place, set_at: at }) => (
          <li key={name} className="line">
            <span>
              <bdi>{name}</bdi> <span className="quiet">for {packs.join(', ')}</span>
            </span>
            <span className="quiet">
              {place === undefined && 'not there'}
              {place === 'settings' && 'handed in by a setting'}
              {place === 'keychain' && 'in the keychain'}
              {at !== undefined && (
                <>
                  , since <When at={at} />
                </>
              )}{' '}
              {place !== 'settings' && (
                <button type="button" className="opener" aria-label={`Set ${name}`} onClick={() => setSetting(name)}>
                  Set…
                </button>
              )}{' '}
              {place === 'keychain' && (
                <button type="button" className="opener" aria-label={`Drop ${name}`} onClick={() => startDropping(name)}>
                  Drop…
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
      {setting !== undefined && <SetCredential name={setting} close={() => setSetting(undefined)} />}
      {dropping !== undefined && (
        <Confirm
          title={`Drop the credential ${dropping}?`}
          act="Drop"
          run={() => drop(dropping)}
          close={() => setDropping(undefined)}
        >
          <p>It goes from the keychain, with the answers that were kept with it. There is no undo.</p>
        </Confirm>
      )}
    </Section>
  );
}

function SetCredential({ name, close }: { name: string; close: () => void }) {
  const { ask } = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const { busy, failure, run } = useDoing({ secret: 'Secret' });
  const [secret, setSecret] = useState('');
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      await ask('setCredential', { name, secret });
      close();
      say({ text: 'Kept in the keychain.' }, 4000);
      lookAgain();
    });
  };
  return (
    <Dialog title={`Set the credential ${name}`} close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <TextField
          label="Secret"
          hint="It goes into the keychain of this computer and is never shown again."
          needed
          secret
          value={secret}
          change={setSecret}
        />
        <Failed text={failure} />
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className="button primary" disabled={busy}>
            Keep
          </button>
        </p>
      </form>
    </Dialog>
  );
}
