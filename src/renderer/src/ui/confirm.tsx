import type { ReactNode } from 'react';
import { useDesktopConfirms } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { ErrorText } from './errors.tsx';
import type { Labels } from './labels.ts';
import { useToast } from './toast.tsx';

interface Props {
  readonly title: string;
  readonly button: string;
  readonly run: () => Promise<unknown>;
  readonly close: () => void;
  readonly ready?: boolean;
  /** Set if the action deletes nothing. The button is then not red. */
  readonly harmless?: true;
  readonly labels?: Labels;
  readonly children: ReactNode;
}

/**
 * A dialog that asks before an action. Cancel has the initial focus, so that pressing Enter by mistake changes nothing (R-WIN-20).
 */
export function Confirm({ title, button, run, close, ready = true, harmless, labels, children }: Props) {
  const task = useTask(labels);
  const onSubmit = task.submit(async () => {
    await run();
    close();
  });
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={onSubmit}>
        {children}
        <ErrorText text={task.failure} />
        <DialogButtons close={close}>
          <Button label={button} type="submit" look={harmless ? 'primary' : 'danger'} disabled={!ready || task.busy} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}

/**
 * Returns a function that starts a destructive action. On the desktop, the action runs immediately, because the main process asks
 * the owner. In a browser, `openDialog` opens a dialog that asks the owner first.
 */
export function useConfirmed(): (run: () => Promise<unknown>, openDialog: () => void) => void {
  const desktopConfirms = useDesktopConfirms();
  const { showToast } = useToast();
  return (run, openDialog) => {
    if (desktopConfirms) run().catch((error: Error) => showToast({ text: error.message }));
    else openDialog();
  };
}

/** The last row of a dialog: Cancel and the given buttons. */
export function DialogButtons({ close, children }: { close: () => void; children: ReactNode }) {
  return (
    <p className="buttons">
      <Button label="Cancel" onClick={close} />
      {children}
    </p>
  );
}
