import { type FormEvent, useEffect, useRef, useState } from 'react';
import type { ForgetReceipt } from '../../../contract/forget.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { Dialog } from '../ui/dialog.tsx';
import { filterName } from './question.ts';

const SHOWN = 5;

interface Props {
  readonly filter: FactsFilter;
  readonly scope: string;
  readonly close: () => void;
  readonly forgotten: (receipt: ForgetReceipt) => void;
}

/** Shows what would go before anything does. For everything, whose memory it is has to be typed. */
export function ForgetMany({ filter, scope, close, forgotten }: Props) {
  const { ask, subject } = useMemory();
  const { data: would, error } = useAsked('forget', { scope, dry_run: true });
  const { data: list } = useAsked('list', { ...filter, limit: SHOWN });
  const [typed, setTyped] = useState('');
  const { busy, failure, run } = useDoing();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // What has come above it pushes it out of sight where there is little room.
    if (would && list) field.current?.scrollIntoView({ block: 'nearest' });
  }, [would, list]);
  const what = filterName(filter);
  const count = would?.deleted ?? 0;
  const more = list ? count - list.facts.length : 0;
  const said = failure ?? error?.message;
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const receipt = await ask('forget', { scope });
      close();
      forgotten(receipt);
    });
  };
  return (
    <Dialog title={what === undefined ? `Forget every fact of ${subject}?` : `Forget every fact ${what}?`} close={close}>
      <form onSubmit={onSubmit}>
        <p role="status">
          {would && (count === 1 ? '1 fact goes' : `${count.toLocaleString()} facts go`)}
          {would && ', with their history. There is no undo.'}
          {would && would.older_backups > 0 && ' Backups still hold sealed copies.'}
        </p>
        <ul className="going">
          {list?.facts.map(({ key }) => (
            <li key={key}>{key}</li>
          ))}
          {more > 0 && <li className="quiet">and {more.toLocaleString()} more</li>}
        </ul>
        {what === undefined && (
          <label>
            Type <strong>{subject}</strong> to forget them all
            <input ref={field} autoComplete="off" value={typed} onChange={({ target }) => setTyped(target.value)} />
          </label>
        )}
        {said !== undefined && (
          <p className="failure" role="alert">
            {said}
          </p>
        )}
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className="button danger" disabled={busy || !would || count === 0 || (what === undefined && typed !== subject)}>
            Forget
          </button>
        </p>
      </form>
    </Dialog>
  );
}
