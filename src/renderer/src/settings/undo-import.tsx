import type { ImportReceipt } from '../../../contract/transfer.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { Confirm } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { useToast } from '../ui/toast.tsx';

interface Props {
  readonly written: NonNullable<ImportReceipt['written']>;
  readonly close: () => void;
  readonly onUndone: () => void;
}

/** A dialog that previews and then undoes exactly the writes of one import. */
export function UndoImport({ written, close, onUndone }: Props) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const { data: preview, error } = useOperation('undo', { ...written, dry_run: true });
  const undo = async (): Promise<void> => {
    const { removed, restored } = await call('undo', written);
    showToast({ text: `Undone: ${counted(removed, 'fact')} forgotten, ${restored.toLocaleString()} restored.` });
    onUndone();
  };
  return (
    <Confirm
      title="Undo the import?"
      button="Undo"
      run={undo}
      close={close}
      ready={preview !== undefined && preview.removed + preview.restored > 0}
    >
      <div role="status">
        {preview && (
          <p>
            {counted(preview.removed, 'fact')} will be forgotten
            {preview.restored > 0 && `, and ${counted(preview.restored, 'fact')} will get their earlier value back`}. Facts that
            were changed after the import stay unchanged.
          </p>
        )}
        {preview && preview.skipped.length > 0 && (
          <p>{counted(preview.skipped.length, 'fact')} can't be restored because the earlier version no longer exists.</p>
        )}
      </div>
      <LoadError error={error} />
    </Confirm>
  );
}
