import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { Button } from './button.tsx';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly className?: string;
  /** If set, only screen readers get the title. */
  readonly hideTitle?: true;
  readonly children: ReactNode;
}

/** A modal `<dialog>`: the browser traps the focus, closes on Escape, and restores the focus. */
export function Dialog({ title, close, className = '', hideTitle, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    // Close the dialog before React removes it: the browser restores the focus only if the dialog is still in the document.
    return () => current?.close();
  }, []);
  return (
    <dialog ref={dialog} className={`dialog ${className}`} aria-labelledby={heading} onClose={close}>
      <h2 id={heading} className={hideTitle ? 'visually-hidden' : undefined}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}

/** The only button of a dialog that just shows information. */
export function CloseButton({ label, primary }: { label: string; primary?: true }) {
  return (
    <form method="dialog" className="buttons">
      <Button label={label} type="submit" look={primary && 'primary'} />
    </form>
  );
}
