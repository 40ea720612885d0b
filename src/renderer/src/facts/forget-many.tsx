import { useEffect, useRef, useState } from 'react';
import type { ForgetReceipt } from '../../../contract/forget.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { useTask } from '../task.ts';
import { counted } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { filterName } from './filter.ts';

const EXAMPLES = 5;

interface Props {
  readonly filter: FactsFilter;
  readonly scope: string;
  readonly close: () => void;
  readonly onForgotten: (receipt: ForgetReceipt) => void;
}

/** A dialog that previews which facts will be forgotten. To forget all facts, the owner must type the memory's name (R-WIN-12). */
export function ForgetMany({ filter, scope, close, onForgotten }: Props) {
  const { call, subject } = useMemory();
  const { data: preview, error } = useOperation('forget', { scope, dry_run: true });
  const { data: list } = useOperation('list', { ...filter, limit: EXAMPLES });
  const [typed, setTyped] = useState('');
  const { busy, failure, submit } = useTask();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // Scroll back to the confirmation field, because the loaded preview pushes the field out of view in a small window.
    if (preview && list) field.current?.scrollIntoView({ block: 'nearest' });
  }, [preview, list]);
  const name = filterName(filter);
  const count = preview?.deleted ?? 0;
  const more = list ? count - list.facts.length : 0;
  const onSubmit = submit(async () => {
    const receipt = await call('forget', { scope });
    close();
    onForgotten(receipt);
  });
  return (
    <Dialog title={name === undefined ? `Forget all facts of ${subject}?` : `Forget all facts ${name}?`} close={close}>
      <form onSubmit={onSubmit}>
        <p role="status">
          {preview && `${counted(count, 'fact')} will be deleted, including all earlier versions. You can't undo this.`}
          {preview && preview.older_backups > 0 && ' Existing backups still contain sealed copies of these facts.'}
        </p>
        <ul className="preview">
          {list?.facts.map(({ key }) => (
            <li key={key}>{key}</li>
          ))}
          {more > 0 && <li className="quiet">and {more.toLocaleString()} more</li>}
        </ul>
        {name === undefined && (
          <label>
            Type <strong>{subject}</strong> to confirm
            <input ref={field} autoComplete="off" value={typed} onChange={({ target }) => setTyped(target.value)} />
          </label>
        )}
        <ErrorText text={failure ?? error?.message} />
        <DialogButtons close={close}>
          <Button
            label="Forget"
            type="submit"
            look="danger"
            disabled={busy || !preview || count === 0 || (name === undefined && typed !== subject)}
          />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
