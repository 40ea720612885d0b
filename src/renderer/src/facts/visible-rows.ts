import { type RefObject, useLayoutEffect, useState } from 'react';
import { flushSync } from 'react-dom';

/** Number of extra rows to render above and below the visible rows, for fast scrolling and screen readers. */
const OVERSCAN = 12;

interface VisibleRows {
  readonly first: number;
  readonly last: number;
  /** Scrolls just far enough to show a row. */
  readonly reveal: (index: number) => void;
}

/** Returns the range of rows that a virtual list must render. All rows have the same height. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, count: number, height: number): VisibleRows {
  const [range, setRange] = useState({ first: 0, last: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const update = (): void => {
      const { scrollTop, clientHeight } = element;
      const first = Math.max(0, Math.floor(scrollTop / height) - OVERSCAN);
      const last = Math.ceil((scrollTop + clientHeight) / height) + OVERSCAN;
      setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
    };
    // Renders with `flushSync`. Otherwise, the next frame would show an empty area instead of the new rows.
    const updateNow = (): void => flushSync(update);
    const observer = new ResizeObserver(update);
    element.addEventListener('scroll', updateNow, { passive: true });
    observer.observe(element);
    update();
    return () => {
      element.removeEventListener('scroll', updateNow);
      observer.disconnect();
    };
  }, [scroller, height]);
  const reveal = (index: number): void => {
    const element = scroller.current;
    if (!element) return;
    const [top, bottom] = [index * height, (index + 1) * height];
    if (top < element.scrollTop) element.scrollTo({ top });
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTo({ top: bottom - element.clientHeight });
  };
  return { first: Math.min(range.first, Math.max(0, count - 1)), last: Math.min(range.last, count - 1), reveal };
}
