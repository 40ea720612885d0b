import { type ReactNode, useId } from 'react';

interface Props {
  readonly label: ReactNode;
  /** What helps to fill it in; it is no part of the name. */
  readonly hint?: string;
  readonly children: (about: { readonly id: string; readonly 'aria-describedby'?: string }) => ReactNode;
}

export function Labelled({ label, hint = '', children }: Props) {
  const [id, hintId] = [useId(), useId()];
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(hint === '' ? { id } : { id, 'aria-describedby': hintId })}
      {hint !== '' && (
        <span id={hintId} className="hint">
          {hint}
        </span>
      )}
    </div>
  );
}
