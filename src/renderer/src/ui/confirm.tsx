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
  /** The action deletes nothing, so its button is not red. */
  readonly harmless?: true;
  readonly labels?: Labels;
  readonly children: ReactNode;
}

/** Asks before an action. Cancel has the focus first, so pressing Enter at once changes nothing (R-WIN-20). */
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
 * Returns a function that starts a destructive action. On the desktop, the program itself asks the owner, so the action runs at once;
 * in a browser, `openDialog` asks first.
 */
export function useConfirmed(): (run: () => Promise<unknown>, openDialog: () => void) => void {
  const desktopConfirms = useDesktopConfirms();
  const { showToast } = useToast();
  return (run, openDialog) => {
    if (desktopConfirms) run().catch((error: Error) => showToast({ text: error.message }));
    else openDialog();
  };
}

/** The buttons at the end of a form in a dialog: Cancel and the given ones. */
export function DialogButtons({ close, children }: { close: () => void; children: ReactNode }) {
  return (
    <p className="buttons">
      <Button label="Cancel" onClick={close} />
      {children}
    </p>
  );
}
