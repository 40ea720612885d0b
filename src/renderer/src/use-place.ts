import { useCallback, useEffect, useState } from 'react';
import type { Place } from './place.ts';

const HOME: Place = { at: 'facts', filter: {} };

/** What this page itself has left with its browser. */
const kept = (state: unknown): Place => (state as Place | null) ?? HOME;

const pageOf = (place: Place): string => JSON.stringify([place.at, place.at === 'packs' && place.opened]);

/** Where the owner is. The browser's own Back, Forward and Reload go by it too. */
export function usePlace(): readonly [Place, (place: Place) => void] {
  const [place, setPlace] = useState(() => kept(history.state));
  useEffect(() => {
    const hear = ({ state }: PopStateEvent): void => setPlace(kept(state));
    addEventListener('popstate', hear);
    return () => removeEventListener('popstate', hear);
  }, []);
  const go = useCallback((next: Place): void => {
    // Filters change with every letter that is typed: only another page is a step to go back.
    if (pageOf(kept(history.state)) === pageOf(next)) history.replaceState(next, '');
    else history.pushState(next, '');
    setPlace(next);
  }, []);
  return [place, go];
}
