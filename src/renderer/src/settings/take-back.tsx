import type { ImportReceipt } from '../../../contract/transfer.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';

interface Props {
  readonly written: NonNullable<ImportReceipt['written']>;
  readonly close: () => void;
  readonly done: () => void;
}

/** Exactly what one import wrote, after a look at what goes and what returns. */
export function TakeBack({ written, close, done }: Props) {
  const { ask } = useMemory();
  const { say } = useToast();
  const { data: would, error } = useAsked('undo', { ...written, dry_run: true });
  const takeBack = async (): Promise<void> => {
    const { removed, restored } = await ask('undo', written);
    say({ text: `Taken back: ${counted(removed, 'fact')} forgotten, ${restored.toLocaleString()} as before.` });
    done();
  };
  return (
    <Confirm
      title="Take the import back?"
      act="Take back"
      run={takeBack}
      close={close}
      ready={would !== undefined && would.removed + would.restored > 0}
    >
      <div role="status">
        {would && (
          <p>
            {counted(would.removed, 'fact')} will be forgotten
            {would.restored > 0 && `, and ${counted(would.restored, 'fact')} changed back to what was said before`}. What was
            changed since the import stays.
          </p>
        )}
        {would && would.skipped.length > 0 && (
          <p>Left as it is, because what was said before is gone: {would.skipped.length.toLocaleString()}.</p>
        )}
      </div>
      <Refused error={error} />
    </Confirm>
  );
}
