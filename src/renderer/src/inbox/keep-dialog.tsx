import type { InboxItem } from '../../../contract/inbox.ts';
import { Preview } from '../activity/undo.tsx';
import { useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { Confirm } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { inputOf, Sentence } from './request.tsx';

interface Props {
  readonly item: InboxItem;
  readonly keep: () => Promise<void>;
  readonly close: () => void;
}

/** The operations that delete data. Keeping such an item deletes the data, so the window asks first (R-WIN-20). */
export const DELETES: ReadonlySet<InboxItem['operation']> = new Set(['forget', 'undo', 'deletePipeline']);

/** Asks before the owner keeps an item that deletes data, and shows how much the operation deletes. */
export function KeepDialog({ item, keep, close }: Props) {
  return (
    <Confirm title="Allow this deletion?" button="Allow" run={keep} close={close}>
      <p>
        <Sentence item={item} />, as <bdi>{item.client}</bdi> asked.
      </p>
      <div role="status">
        {item.operation === 'forget' && <ForgetPreview scope={item.scope ?? ''} />}
        {item.operation === 'undo' && <UndoPreview item={item} />}
        {item.operation === 'deletePipeline' && <p>The pipeline will be deleted. The records of its runs stay.</p>}
      </div>
    </Confirm>
  );
}

function ForgetPreview({ scope }: { scope: string }) {
  const { data, error } = useOperation('forget', { scope, dry_run: true });
  return (
    <>
      {data && <p>{counted(data.deleted, 'entry')} will be deleted. You can't undo this.</p>}
      <LoadError error={error} />
    </>
  );
}

function UndoPreview({ item }: { item: InboxItem }) {
  const { data, error } = useOperation('undo', { ...inputOf<'undo'>(item), dry_run: true });
  return (
    <>
      {data && <Preview preview={data} keys={[]} />}
      <LoadError error={error} />
    </>
  );
}
