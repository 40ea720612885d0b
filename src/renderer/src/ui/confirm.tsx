import type { FormEvent, ReactNode } from 'react';
import { useDoing } from '../doing.ts';
import { Dialog } from './dialog.tsx';
import type { Labels } from './labels.ts';
import { Failed } from './refused.tsx';

interface Props {
  /** What is about to happen, as a question. */
  readonly title: string;
  /** What the button does. */
  readonly act: string;
  readonly run: () => Promise<unknown>;
  readonly close: () => void;
  readonly ready?: boolean;
  /** It takes nothing away. */
  readonly harmless?: true;
  /** Of what is filled in. */
  readonly labels?: Labels;
  readonly children: ReactNode;
}

/** Says what goes before it goes; whoever presses Enter at once changes nothing. */
export function Confirm({ title, act, run, close, ready = true, harmless, labels, children }: Props) {
  const doing = useDoing(labels);
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void doing.run(async () => {
      await run();
      close();
    });
  };
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={onSubmit}>
        {children}
        <Failed text={doing.failure} />
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className={`button ${harmless ? 'primary' : 'danger'}`} disabled={!ready || doing.busy}>
            {act}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
