import { type ReactNode, useState } from 'react';
import { useMemory, useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { Confirm, useConfirmed } from './confirm.tsx';
import { LoadError } from './errors.tsx';
import { useToast } from './toast.tsx';

interface ForgetRequest {
  readonly title: string;
  readonly scope: string;
  /** Text that says what will be deleted and what will stay. */
  readonly text: string;
  /** The singular noun for the deleted items. */
  readonly noun: string;
}

/** Forgets run records and caches. Returns a function that asks for confirmation, and the dialog to render. */
export function useForgetScope(): readonly [start: (request: ForgetRequest) => void, dialog: ReactNode] {
  const { call } = useMemory();
  const { showToast } = useToast();
  const confirmed = useConfirmed();
  const [request, setRequest] = useState<ForgetRequest>();
  const forget = async ({ scope, noun }: ForgetRequest): Promise<void> => {
    const { deleted } = await call('forget', { scope });
    showToast({ text: `${counted(deleted, noun)} forgotten.` });
  };
  const start = (next: ForgetRequest): void =>
    confirmed(
      () => forget(next),
      () => setRequest(next),
    );
  const dialog = request && <ForgetDialog {...request} forget={() => forget(request)} close={() => setRequest(undefined)} />;
  return [start, dialog];
}

interface Props extends ForgetRequest {
  readonly forget: () => Promise<void>;
  readonly close: () => void;
}

function ForgetDialog({ title, scope, text, noun, forget, close }: Props) {
  const { data, error } = useOperation('forget', { scope, dry_run: true });
  return (
    <Confirm title={title} button="Forget" run={forget} close={close} ready={data !== undefined && data.deleted > 0}>
      <p>{text}</p>
      <p role="status">
        {data &&
          (data.deleted === 0 ? 'Nothing to forget.' : `${counted(data.deleted, noun)} will be deleted. You can't undo this.`)}
      </p>
      <LoadError error={error} />
    </Confirm>
  );
}
