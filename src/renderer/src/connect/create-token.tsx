import { useState } from 'react';
import { TOKEN_DAYS } from '../../../contract/limits.ts';
import { DEFAULT_SCOPES, KNOWN_CLIENTS } from '../../../contract/names.ts';
import type { MintReceipt } from '../../../contract/token.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { CloseButton, Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { TextField } from '../ui/field.tsx';
import { QuarantineChoice } from './choices.tsx';

/** The scopes to choose from. `memory:brief` is left out, because only `connect` creates tokens for hooks. */
const CHOICES = [...DEFAULT_SCOPES, 'admin'] as const;

const SCOPES: Readonly<Record<(typeof CHOICES)[number], string>> = {
  'memory:read': 'Read',
  'memory:write': 'Write and forget',
  'packs:run': 'Run packs',
  admin: 'Everything you can do',
};

/** Creates a token for one client and shows the token only once (R-WIN-21). */
export function CreateToken({ close, onCreated }: { close: () => void; onCreated: () => void }) {
  const { call, subject } = useMemory();
  const [client, setClient] = useState('');
  const [name, setName] = useState('');
  const unnamed = name.trim() === '';
  const { busy, failure, submit } = useTask({
    client: 'Program',
    // If the Name field is empty, the Program field provides the name, so errors in `name` concern the Program field.
    name: unnamed ? 'Program' : 'Name',
    days: 'Days until the token expires',
  });
  const [days, setDays] = useState(String(TOKEN_DAYS));
  const [scopes, setScopes] = useState<readonly string[]>(DEFAULT_SCOPES);
  /** The owner's choice. Until the owner chooses, the program decides, as for a token that is created without a choice. */
  const [chosen, setChosen] = useState<boolean>();
  const isAdmin = scopes.includes('admin');
  const quarantine = !isAdmin && (chosen ?? !KNOWN_CLIENTS.has(client.trim()));
  const [receipt, setReceipt] = useState<MintReceipt>();
  const onSubmit = submit(async () => {
    const selected = CHOICES.filter((scope) => scopes.includes(scope));
    const input = { name: unnamed ? client : name, client, subject, scopes: selected, days: Number(days), quarantine };
    setReceipt(await call('mintToken', input));
    onCreated();
  });
  if (receipt) {
    return (
      <Dialog title={`The token of ${receipt.name}`} close={close}>
        <p>Copy the token now. The token is shown only once and is not stored.</p>
        <Copyable text={receipt.token} name="the token" />
        <CloseButton label="Done" primary />
      </Dialog>
    );
  }
  return (
    <Dialog title="Create a token" close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <TextField
          label="Program"
          hint="Shown next to the facts that the program writes, for example claude-code."
          required
          value={client}
          change={setClient}
        />
        <TextField
          label="Name"
          hint="Your own name for this token. Leave empty to use the program's name."
          value={name}
          change={setName}
        />
        <fieldset>
          <legend>
            Access to the memory of <bdi>{subject}</bdi>
          </legend>
          {CHOICES.map((scope) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={({ target }) => setScopes(target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))}
              />
              {SCOPES[scope]}
            </label>
          ))}
        </fieldset>
        <QuarantineChoice name="the program" checked={quarantine} change={setChosen} disabled={isAdmin} />
        <label>
          Days until the token expires
          <input type="number" min={1} max={TOKEN_DAYS} required value={days} onChange={({ target }) => setDays(target.value)} />
        </label>
        <ErrorText text={failure} />
        <DialogButtons close={close}>
          <Button label="Create" type="submit" look="primary" disabled={busy || scopes.length === 0} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
