import { type FormEvent, useState } from 'react';
import { TOKEN_DAYS, TOKEN_SCOPES } from '../../../contract/limits.ts';
import type { MintReceipt } from '../../../contract/token.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Failed } from '../ui/refused.tsx';
import { TextField } from '../ui/text-field.tsx';

const SCOPES: Readonly<Record<(typeof TOKEN_SCOPES)[number], string>> = {
  'memory:read': 'read',
  'memory:write': 'write and forget',
  'packs:run': 'run packs',
  admin: 'everything, as you do',
};

/** Makes a token for one program, and shows it once. */
export function Mint({ close, made }: { close: () => void; made: () => void }) {
  const { ask, subject } = useMemory();
  const [client, setClient] = useState('');
  const [name, setName] = useState('');
  const unnamed = name.trim() === '';
  const { busy, failure, run } = useDoing({
    client: 'Program',
    // It is the program's unless said otherwise.
    name: unnamed ? 'Program' : 'Name',
    days: 'Days until it expires',
  });
  const [days, setDays] = useState(String(TOKEN_DAYS));
  const [scopes, setScopes] = useState<readonly string[]>(TOKEN_SCOPES.filter((scope) => scope !== 'admin'));
  const [receipt, setReceipt] = useState<MintReceipt>();
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const chosen = TOKEN_SCOPES.filter((scope) => scopes.includes(scope));
      const wanted = { name: unnamed ? client : name, client, subject, scopes: chosen, days: Number(days) };
      setReceipt(await ask('mintToken', wanted));
      made();
    });
  };
  if (receipt) {
    return (
      <Dialog title={`The token of ${receipt.name}`} close={close}>
        <p>Copy it now: it is shown this once and kept nowhere.</p>
        <Copyable text={receipt.token} name="the token" />
        <form method="dialog" className="buttons">
          <button className="button primary">Done</button>
        </form>
      </Dialog>
    );
  }
  return (
    <Dialog title="Make a token" close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <TextField
          label="Program"
          hint="Shown beside what it writes, such as claude-code."
          needed
          value={client}
          change={setClient}
        />
        <TextField
          label="Name"
          hint="What you call this token; as the program, unless you say otherwise."
          value={name}
          change={setName}
        />
        <fieldset>
          <legend>
            It may, in the memory of <bdi>{subject}</bdi>
          </legend>
          {TOKEN_SCOPES.map((scope) => (
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
        <label>
          Days until it expires
          <input type="number" min={1} max={TOKEN_DAYS} required value={days} onChange={({ target }) => setDays(target.value)} />
        </label>
        <Failed text={failure} />
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className="button primary" disabled={busy || scopes.length === 0}>
            Make
          </button>
        </p>
      </form>
    </Dialog>
  );
}
