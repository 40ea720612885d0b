import { Clock } from 'lucide-react';
import { type KeyboardEvent, memo, type MouseEvent, type RefObject, useEffect, useImperativeHandle, useRef } from 'react';
import { fullDate, timeLeft, useNow } from '../time.ts';
import type { Row } from './pages.ts';
import { groupReasons, Snippet } from './snippet.tsx';
import { useVisibleRows } from './visible-rows.ts';

export interface ListHandle {
  /** Focuses the list, and selects the first row if no row is selected. */
  enter: () => void;
  reveal: () => void;
}

interface Props {
  readonly ref: RefObject<ListHandle | null>;
  readonly rows: readonly Row[];
  readonly selected: string | undefined;
  readonly select: (key: string) => void;
  /** Keys of facts with unsaved edits. */
  readonly unsaved: ReadonlySet<string>;
  readonly open: (key: string) => void;
  readonly onVisibleRows: (first: number, last: number) => void;
}

/** Heights of a row and of a search result in rem, so that both grow with the text size. */
const ROW_HEIGHT = 2.125;
const RESULT_HEIGHT = 4.5;

const idOf = (index: number): string => `fact-${index}`;

/** Returns the index of the row that contains the event target, or -1 if the target is outside all rows. */
function indexOf(target: EventTarget): number {
  const row = target instanceof Element ? target.closest('[role=option]') : null;
  return Number(row?.ariaPosInSet ?? 0) - 1;
}

/**
 * A virtual list: only visible rows are in the document. The list is one tab stop, and arrow keys move the selection (R-WIN-10).
 */
export function FactList({ ref, rows, selected, select, unsaved, open, onVisibleRows }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const now = useNow();
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const height = Math.round((rows[0]?.why === undefined ? ROW_HEIGHT : RESULT_HEIGHT) * rem);
  const { first, last, reveal } = useVisibleRows(scroller, rows.length, height);
  useEffect(() => onVisibleRows(first, last), [first, last, onVisibleRows]);
  const at = rows.findIndex(({ key }) => key === selected);
  const move = (to: number): void => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    const row = rows[index];
    if (!row) return;
    select(row.key);
    reveal(index);
  };
  useImperativeHandle(ref, () => ({
    enter() {
      scroller.current?.focus();
      if (at === -1) move(0);
    },
    reveal() {
      if (at !== -1) reveal(at);
    },
  }));
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const to = destination(event.key, at, rows.length);
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
  const onClick = ({ target }: MouseEvent): void => {
    const row = rows[indexOf(target)];
    if (row) open(row.key);
  };
  // Focuses the list, because a focused row would lose the focus when the row scrolls out of view. Does not scroll, because
  // scrolling would cancel the click.
  const onMouseDown = (event: MouseEvent): void => {
    if (indexOf(event.target) === -1) return;
    event.preventDefault();
    scroller.current?.focus({ preventScroll: true });
  };
  return (
    <div
      ref={scroller}
      className="rows"
      role="listbox"
      tabIndex={0}
      aria-label="Facts"
      aria-activedescendant={at >= first && at <= last ? idOf(at) : undefined}
      onKeyDown={onKeyDown}
      onClick={onClick}
      onMouseDown={onMouseDown}
    >
      <div className="all" style={{ height: rows.length * height }}>
        {rows.slice(first, last + 1).map(({ key, expires_at: end, why, snippet }, offset) => (
          <FactRow
            key={key}
            factKey={key}
            end={end}
            why={why}
            snippet={snippet}
            now={now}
            index={first + offset}
            of={rows.length}
            height={height}
            selected={first + offset === at}
            unsaved={unsaved.has(key)}
          />
        ))}
      </div>
    </div>
  );
}

function destination(key: string, at: number, count: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return at + 1;
    case 'ArrowUp':
    case 'k':
      return at - 1;
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    case 'PageDown':
      return at + 12;
    case 'PageUp':
      return at - 12;
    default:
      return undefined;
  }
}

interface RowProps {
  readonly factKey: string;
  readonly end: string;
  readonly why: string | undefined;
  readonly snippet: string | undefined;
  readonly now: number;
  readonly index: number;
  readonly of: number;
  readonly height: number;
  readonly selected: boolean;
  readonly unsaved: boolean;
}

/** Omits the value, which is read only for the selected fact. Memoized, because every keystroke and scroll renders the list. */
const FactRow = memo(function FactRow(row: RowProps) {
  const { factKey, end, why, snippet, index, height } = row;
  const left = timeLeft(end, row.now);
  const nameStart = factKey.lastIndexOf('/') + 1;
  return (
    <div
      id={idOf(index)}
      className="row"
      role="option"
      tabIndex={-1}
      aria-selected={row.selected}
      aria-posinset={index + 1}
      aria-setsize={row.of}
      style={{ height, transform: `translateY(${index * height}px)` }}
    >
      <span className="key">
        {factKey.slice(0, nameStart)}
        <strong>{factKey.slice(nameStart)}</strong>
      </span>
      {row.unsaved && <span className="unsaved">unsaved</span>}
      <time dateTime={end} title={fullDate(end)} data-soon={left.soon || undefined}>
        {left.soon && <Clock aria-hidden="true" />}
        {left.label}
      </time>
      {snippet !== undefined && (
        <span className="snippet">
          <Snippet text={snippet} why={why ?? ''} />
        </span>
      )}
      {why !== undefined && <span className="why">{groupReasons(why)}</span>}
    </div>
  );
});
