import type { FormEvent, ReactNode } from 'react';
import { useTask } from '../task.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { ErrorText } from './errors.tsx';
import type { Labels } from './labels.ts';

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
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void task.run(async () => {
      await run();
      close();
    });
  };
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

/** The buttons at the end of a form in a dialog: Cancel and the given ones. */
export function DialogButtons({ close, children }: { close: () => void; children: ReactNode }) {
  return (
    <p className="buttons">
      <Button label="Cancel" onClick={close} />
      {children}
    </p>
  );
}
