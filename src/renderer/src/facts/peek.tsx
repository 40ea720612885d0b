import { useEffect } from 'react';
import { useAsked } from '../memory-context.tsx';

/** A look at the value without leaving the list; moving on closes it. */
export function Peek({ factKey, close }: { factKey: string; close: () => void }) {
  const { data, error } = useAsked('recall', { key: factKey });
  useEffect(() => {
    const hear = (event: KeyboardEvent): void => {
      // What lies above it is closed first.
      if (event.key !== 'Escape' || document.querySelector('dialog[open], [popover]:popover-open')) return;
      event.preventDefault();
      close();
    };
    addEventListener('keydown', hear, { capture: true });
    return () => removeEventListener('keydown', hear, { capture: true });
  }, [close]);
  return (
    <div className="peek" role="status" aria-label={factKey}>
      <p className="meta">{factKey}</p>
      {data?.key === factKey && <pre className="value">{data.value}</pre>}
      {error && <p className="failure">{error.message}</p>}
    </div>
  );
}
