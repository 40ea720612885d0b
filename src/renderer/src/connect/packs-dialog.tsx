import { useState } from 'react';
import type { ClientRow } from '../../../contract/client.ts';
import { MEMORY_PACKS } from '../../../contract/limits.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';

/** Changes which packs an agent is offered (R-CONN-14). */
export function PacksDialog({ client: { id, name, packs: offered }, close }: { client: ClientRow; close: () => void }) {
  const { call } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, submit } = useTask();
  const { data, error } = usePolledOperation('packs', {});
  const [isAll, setAll] = useState(offered === undefined);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set(offered));
  const packs = data?.packs.filter((pack) => !MEMORY_PACKS.has(pack.name)) ?? [];
  const toggle = (pack: string, isOffered: boolean): void => {
    setSelected(new Set(isOffered ? [...selected, pack] : [...selected].filter((one) => one !== pack)));
  };
  const onSubmit = submit(async () => {
    const names = packs.map((pack) => pack.name).filter((pack) => selected.has(pack));
    await call('offerPacks', { client: id, packs: isAll ? 'all' : names });
    refresh();
    close();
  });
  return (
    <Dialog title={`Packs for ${name}`} close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <p className="quiet">
          {name} reads the description of each of its packs in every conversation. Offer it only the packs that it needs.
        </p>
        <fieldset>
          <legend>Packs</legend>
          <label>
            <input type="checkbox" checked={isAll} onChange={({ target }) => setAll(target.checked)} />
            All packs, also packs that you add later
          </label>
          {!isAll &&
            packs.map((pack) => (
              <label key={pack.name}>
                <input
                  type="checkbox"
                  checked={selected.has(pack.name)}
                  onChange={({ target }) => toggle(pack.name, target.checked)}
                />
                <span>
                  {pack.title} <span className="quiet">{pack.name}</span>
                </span>
              </label>
            ))}
        </fieldset>
        <ErrorText text={failure ?? error?.message} />
        <DialogButtons close={close}>
          <Button label="Save" type="submit" look="primary" disabled={busy || !data} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
