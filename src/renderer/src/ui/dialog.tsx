import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly className?: string;
  /** Whether its title is only told to those who hear it. */
  readonly unseen?: true;
  readonly children: ReactNode;
}

/** The browser's own: it keeps the focus inside, closes on Escape, and gives the focus back. */
export function Dialog({ title, close, className = '', unseen, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    // While it is still in the document: else nobody gets the focus back.
    return () => current?.close();
  }, []);
  return (
    <dialog ref={dialog} className={`dialog ${className}`} aria-labelledby={heading} onClose={close}>
      <h2 id={heading} className={unseen ? 'unseen' : undefined}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}
