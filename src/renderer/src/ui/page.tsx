import { type ReactNode, useEffect, useId, useRef } from 'react';
import './page.css';

interface Props {
  readonly title: string;
  /** What this page is for, in a sentence. */
  readonly says?: string | undefined;
  /** Of one thing among several: the way back to all of them. */
  readonly back?: { readonly to: string; readonly go: () => void };
  readonly children: ReactNode;
}

/** One of the pages beside the facts. It takes the focus, so that what is read or pressed next is here. */
export function Page({ title, says, back, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const id = useId();
  useEffect(() => heading.current?.focus(), []);
  return (
    <main className="page" aria-labelledby={id}>
      {back && (
        <p className="buttons">
          <button type="button" className="button" onClick={back.go}>
            <span aria-hidden="true">‹ </span>
            {back.to}
          </button>
        </p>
      )}
      <h1 id={id} ref={heading} tabIndex={-1}>
        <bdi>{title}</bdi>
      </h1>
      {says !== undefined && (
        <p className="quiet lead">
          <bdi>{says}</bdi>
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
