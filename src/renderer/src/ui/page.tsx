import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Button } from './button.tsx';

interface Props {
  readonly title: string;
  readonly description?: string | undefined;
  /** A link from a detail page back to its list. */
  readonly back?: { readonly to: string; readonly go: () => void };
  readonly children: ReactNode;
}

/** A page other than Facts. The heading gets the initial focus, so that Tab and screen readers start there. */
export function Page({ title, description, back, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const id = useId();
  useEffect(() => heading.current?.focus(), []);
  return (
    <main className="page" aria-labelledby={id}>
      {back && (
        <p className="buttons">
          <Button
            label={
              <>
                <span aria-hidden="true">‹ </span>
                {back.to}
              </>
            }
            onClick={back.go}
          />
        </p>
      )}
      <h1 id={id} ref={heading} tabIndex={-1}>
        <bdi>{title}</bdi>
      </h1>
      {description !== undefined && (
        <p className="quiet lead">
          <bdi>{description}</bdi>
        </p>
      )}
      {children}
    </main>
  );
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}
