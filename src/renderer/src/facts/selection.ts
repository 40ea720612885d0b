import { useState } from 'react';
import type { Draft } from './drafts.tsx';
import type { Row } from './pages.ts';

interface Selection {
  readonly key: string;
  readonly index: number;
  /** Identifies the list in which the key was selected. */
  readonly list: string;
  /** True for the fact to open first, until the list shows it. */
  readonly pinned?: true;
  /** Keys that disappeared from this list while selected, oldest first. Each time, the selection moved to the next row. */
  readonly replaced: readonly string[];
}

interface SelectionControl {
  readonly selected: string | undefined;
  readonly select: (key: string) => void;
  /** Selects a restored fact again, unless the owner selected another row after the fact disappeared. */
  readonly reselect: (key: string) => void;
}

/**
 * Returns the selected fact, with functions that change the selection. If the fact disappears from its list, the next row is
 * selected. If the owner opens another list that does not contain the fact, nothing is selected. A fact with a draft stays selected
 * even if the list does not contain the fact. `first` is selected at first, also if it is further down the list.
 */
export function useSelection(
  rows: readonly Row[],
  list: string,
  drafts: ReadonlyMap<string, Draft>,
  first: string | undefined,
): SelectionControl {
  const [selection, setSelection] = useState<Selection | undefined>(
    first === undefined ? undefined : { key: first, index: -1, list, pinned: true, replaced: [] },
  );
  const [restored, setRestored] = useState<string>();
  const indexOf = (key: string): number => rows.findIndex((row) => row.key === key);
  const next = nextSelection();
  if (next && (next.key !== selection?.key || next.index !== selection.index || next.list !== selection.list)) setSelection(next);
  return {
    selected: next?.key,
    select: (key) => setSelection({ key, index: indexOf(key), list, replaced: [] }),
    reselect: setRestored,
  };

  function nextSelection(): Selection | undefined {
    if (!selection) {
      const drafted = [...drafts.keys()].at(-1);
      return drafted === undefined ? undefined : { key: drafted, index: indexOf(drafted), list, replaced: [] };
    }
    const isSameList = selection.list === list;
    const replaced = isSameList ? selection.replaced : [];
    const back = restored === undefined || drafts.has(selection.key) ? -1 : replaced.lastIndexOf(restored);
    if (restored !== undefined && back !== -1 && indexOf(restored) !== -1) {
      return { key: restored, index: indexOf(restored), list, replaced: replaced.slice(0, back) };
    }
    const found = indexOf(selection.key);
    const index = found === -1 && isSameList ? Math.min(selection.index, rows.length - 1) : found;
    if (found === -1 && selection.pinned && isSameList) return selection;
    if (found !== -1 || drafts.has(selection.key)) return { key: selection.key, index, list, replaced };
    const row = rows[index];
    return row && { key: row.key, index, list, replaced: [...replaced, selection.key] };
  }
}
