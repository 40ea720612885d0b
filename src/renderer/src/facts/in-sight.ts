import { type RefObject, useLayoutEffect, useState } from 'react';
import { flushSync } from 'react-dom';

/** Rows beside those in sight that are there too: a quick hand or a screen reader may be ahead of us. */
const BESIDE = 12;

interface InSight {
  readonly first: number;
  readonly last: number;
  /** Scrolls no further than it must. */
  readonly reveal: (index: number) => void;
}

/** Which of so many rows, all of one height, are to be there while the others are only room. */
export function useInSight(scroller: RefObject<HTMLElement | null>, count: number, height: number): InSight {
  const [sight, setSight] = useState({ first: 0, last: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const look = (): void => {
      const { scrollTop, clientHeight } = element;
      const first = Math.max(0, Math.floor(scrollTop / height) - BESIDE);
      const last = Math.ceil((scrollTop + clientHeight) / height) + BESIDE;
      setSight((seen) => (seen.first === first && seen.last === last ? seen : { first, last }));
    };
    // Later than the frame that is being made, there would be a moment of emptiness.
    const lookAtOnce = (): void => flushSync(look);
    const resized = new ResizeObserver(look);
    element.addEventListener('scroll', lookAtOnce, { passive: true });
    resized.observe(element);
    look();
    return () => {
      element.removeEventListener('scroll', lookAtOnce);
      resized.disconnect();
    };
  }, [scroller, height]);
  const reveal = (index: number): void => {
    const element = scroller.current;
    if (!element) return;
    const [top, bottom] = [index * height, (index + 1) * height];
    if (top < element.scrollTop) element.scrollTo({ top });
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTo({ top: bottom - element.clientHeight });
  };
  return { first: Math.min(sight.first, Math.max(0, count - 1)), last: Math.min(sight.last, count - 1), reveal };
}
