import type { KeyboardEvent, RefObject } from 'react';
import type { FactsFilter } from '../place.ts';
import { counted } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { isKeyUnavailable } from '../ui/errors.tsx';
import { filterName } from './filter.ts';
import type { Sort, useRows } from './rows.ts';
import { TagOrClient } from './tag-or-client.tsx';

interface SearchBoxProps {
  readonly ref: RefObject<HTMLInputElement | null>;
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly enterList: () => void;
}

export function SearchBox({ ref, text, setText, enterList }: SearchBoxProps) {
  const onKeyDown = (event: KeyboardEvent): void => {
    // Ignore keys while the owner composes a character, because the input method (IME) handles these keys.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') setText('');
    if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
    // Without `preventDefault`, the arrow key would also scroll the list.
    event.preventDefault();
    enterList();
  };
  return (
    <input
      ref={ref}
      type="search"
      placeholder="Search facts"
      aria-label="Search facts"
      autoComplete="off"
      spellCheck={false}
      value={text}
      onChange={({ target }) => setText(target.value)}
      onKeyDown={onKeyDown}
    />
  );
}

interface Props {
  readonly names: RefObject<HTMLSelectElement | null>;
  readonly filter: FactsFilter;
  readonly show: (filter: FactsFilter) => void;
  readonly words: string;
  readonly list: ReturnType<typeof useRows>;
  readonly sort: Sort;
  readonly setSort: (sort: Sort) => void;
  /** Forgets all shown facts. Undefined for search results, for facts that expire soon and for an empty list. */
  readonly forgetAll: (() => void) | undefined;
}

export function ListHeader({ names, filter, show, words, list, sort, setSort, forgetAll }: Props) {
  const { failure } = list;
  const name = filterName(filter);
  return (
    <div className="heading">
      {name !== undefined && (
        <button type="button" className="chip" onClick={() => show({})} aria-label={`Clear the filter: ${name}`}>
          <span title={name}>{name}</span> <span aria-hidden="true">×</span>
        </button>
      )}
      <p className="status" role="status" aria-live="polite">
        {failure ? !isKeyUnavailable(failure) && failure.message : <span className="count">{countOf(list, words)}</span>}
      </p>
      {name !== undefined && forgetAll && <Button label="Forget all…" look="link" className="danger" onClick={forgetAll} />}
      <span className="choosers">
        <TagOrClient ref={names} filter={filter} show={show} ready={!list.pending} />
        {words === '' && (
          <select aria-label="Sort by" value={sort} onChange={({ target }) => setSort(target.value as Sort)}>
            <option value="updated">Last changed</option>
            <option value="expires">Expires first</option>
          </select>
        )}
      </span>
    </div>
  );
}

function countOf({ rows, hasMore, partial, pending }: Props['list'], words: string): string {
  if (pending) return '';
  const noun = words === '' ? 'fact' : 'result';
  if (hasMore) return `${rows.length.toLocaleString()} or more ${noun}s`;
  return `${counted(rows.length, noun)}${partial ? ', still indexing' : ''}`;
}
