import type { ComponentProps, ReactNode } from 'react';

interface Props extends Omit<ComponentProps<'button'>, 'children'> {
  readonly label: ReactNode;
  readonly look?: 'primary' | 'danger' | 'link' | undefined;
}

export function Button({ label, look, type = 'button', className = '', ...rest }: Props) {
  const style = look === 'link' ? 'opener' : `button ${look ?? ''}`;
  return (
    <button {...rest} type={type} className={`${style} ${className}`.trim()}>
      {label}
    </button>
  );
}
