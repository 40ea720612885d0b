import { useLayoutEffect, useRef, useState } from 'react';

/** What one version of a fact says. A long one scrolls by itself: who wrote it, when it goes and what can be done stay in reach. */
export function Value({ text }: { text: string }) {
  const place = useRef<HTMLPreElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => {
    const { current: shown } = place;
    if (!shown) return undefined;
    // By its height: a sign that is taller than its line alone is nothing to scroll to.
    const look = (): void => setScrolls(shown.offsetHeight + 1 > Number.parseFloat(getComputedStyle(shown).maxHeight));
    look();
    const looking = new ResizeObserver(look);
    looking.observe(shown);
    return () => looking.disconnect();
  }, []);
  // The keys stop where there is something to scroll, and nowhere else.
  return (
    <pre ref={place} className="value" {...(scrolls && { role: 'region', 'aria-label': 'Value', tabIndex: 0 })}>
      {text}
    </pre>
  );
}
