import { useDeferredValue, useState } from 'react';
import type { FactsFilter, Place } from '../place.ts';
import { isSameFilter, parseSearch } from './filter.ts';

interface SearchText {
  readonly text: string;
  /** The typed words without the filter. A deferred value, which can lag behind fast typing. */
  readonly words: string;
  readonly setText: (text: string) => void;
  /** Clears the text and applies another filter. */
  readonly show: (filter: FactsFilter) => void;
}

/** Returns the state of the search box. A typed filter applies only while the text contains the filter (R-WIN-50). */
export function useSearchText(filter: FactsFilter, hidden: boolean, go: (place: Place) => void): SearchText {
  const [text, setText] = useState('');
  const search = parseSearch(text);
  // If the owner chose another filter in the sidebar or a menu, remove the typed filter from the text.
  if (search.filter && !hidden && !isSameFilter(search.filter, filter)) setText(search.words);
  return {
    text,
    words: useDeferredValue(search.words),
    setText: (next) => {
      const typed = parseSearch(next).filter;
      setText(next);
      if (typed) go({ at: 'facts', filter: typed });
      else if (search.filter) go({ at: 'facts', filter: {} });
    },
    show: (next) => {
      setText('');
      go({ at: 'facts', filter: next });
    },
  };
}
