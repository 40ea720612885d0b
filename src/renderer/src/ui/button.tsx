import type { ComponentProps, ReactNode } from 'react';

interface Props extends Omit<ComponentProps<'button'>, 'children'> {
  readonly label: ReactNode;
  readonly look?: 'primary' | 'danger' | 'link' | undefined;
}

/** A button with a border, or a text button with the look of a link. */
export function Button({ label, look, type = 'button', className = '', ...rest }: Props) {
  const style = look === 'link' ? 'opener' : `button ${look ?? ''}`;
  return (
    <button {...rest} type={type} className={`${style} ${className}`.trim()}>
      {label}
    </button>
  );
}
