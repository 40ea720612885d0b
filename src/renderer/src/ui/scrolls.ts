import { type RefObject, useLayoutEffect, useRef, useState } from 'react';

/**
 * Returns whether an element with a `max-height` has reached that height, so that its content scrolls. Such an element must be a tab
 * stop, because arrow keys scroll it. A shorter element is no tab stop, because keys have no effect on it.
 */
export function useScrolls<E extends HTMLElement>(): readonly [place: RefObject<E | null>, scrolls: boolean] {
  const place = useRef<E>(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => {
    const { current: element } = place;
    if (!element) return undefined;
    // Compares the height with `max-height`, not with `scrollHeight`, because tall characters increase `scrollHeight` too.
    const measure = (): void => setScrolls(element.offsetHeight + 1 > Number.parseFloat(getComputedStyle(element).maxHeight));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [place, scrolls];
}
