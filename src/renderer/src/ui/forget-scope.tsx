import { type ReactNode, useState } from 'react';
import { useAsked, useIsAsked, useMemory } from '../memory-context.tsx';
import { Confirm } from './confirm.tsx';
import { Refused } from './refused.tsx';
import { useToast } from './toast.tsx';

interface Forgetting {
  readonly title: string;
  readonly scope: string;
  /** What goes and what stays. */
  readonly says: string;
  /** What one of the things is called that go. */
  readonly one: string;
}

/** Forgets what is not facts, after a look at how much that is: the way to ask for it, and the dialog while there is one. */
export function useForgetScope(): readonly [ask: (wanted: Forgetting) => void, dialog: ReactNode] {
  const { ask } = useMemory();
  const { say } = useToast();
  const isAsked = useIsAsked();
  const [asking, setAsking] = useState<Forgetting>();
  const forget = async ({ scope, one }: Forgetting): Promise<void> => {
    const { deleted } = await ask('forget', { scope });
    say({ text: `${counted(deleted, one)} forgotten.` });
  };
  const start = (wanted: Forgetting): void => {
    if (isAsked) forget(wanted).catch((refused: Error) => say({ text: refused.message }));
    else setAsking(wanted);
  };
  const dialog = asking && <ForgetScope {...asking} forget={() => forget(asking)} close={() => setAsking(undefined)} />;
  return [start, dialog];
}

interface Props extends Forgetting {
  readonly forget: () => Promise<void>;
  readonly close: () => void;
}

function ForgetScope({ title, scope, says, one, forget, close }: Props) {
  const { data, error } = useAsked('forget', { scope, dry_run: true });
  return (
    <Confirm title={title} act="Forget" run={forget} close={close} ready={data !== undefined && data.deleted > 0}>
      <p>{says}</p>
      <p role="status">
        {data &&
          (data.deleted === 0 ? 'There is nothing to forget.' : `${counted(data.deleted, one)} will go. There is no undo.`)}
      </p>
      <Refused error={error} />
    </Confirm>
  );
}

export const counted = (count: number, one: string): string => {
  if (count === 1) return `1 ${one}`;
  return `${count.toLocaleString()} ${one.endsWith('y') ? `${one.slice(0, -1)}ies` : `${one}s`}`;
};
