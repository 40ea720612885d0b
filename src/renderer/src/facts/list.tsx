import { Clock } from 'lucide-react';
import { type KeyboardEvent, memo, type MouseEvent, type RefObject, useEffect, useImperativeHandle, useRef } from 'react';
import { fullDate, timeLeft, useNow } from '../time.ts';
import { Found, reasonOf } from './found.tsx';
import { useInSight } from './in-sight.ts';
import type { Row } from './pages.ts';

export interface ListHandle {
  /** Takes the focus; the first row is chosen if none is. */
  enter: () => void;
  /** Makes the chosen row visible. */
  reveal: () => void;
}

interface Props {
  readonly ref: RefObject<ListHandle | null>;
  readonly rows: readonly Row[];
  readonly selected: string | undefined;
  readonly select: (key: string) => void;
  /** Of which something was typed and not saved. */
  readonly unsaved: ReadonlySet<string>;
  readonly open: (key: string) => void;
  /** Hears which rows are in sight, from the first to the last. */
  readonly see: (first: number, last: number) => void;
}

/** In rem: rows grow with the text. */
const HEIGHT = 2.125;
const HIT_HEIGHT = 4.5;

const idOf = (index: number): string => `fact-${index}`;

/** Of the row in which it happened; -1 beside all rows. */
function indexOf(target: EventTarget): number {
  const row = target instanceof Element ? target.closest('[role=option]') : null;
  return Number(row?.ariaPosInSet ?? 0) - 1;
}

/** One tab stop; arrows move. Only rows in sight are there, however many there are. */
export function FactList({ ref, rows, selected, select, unsaved, open, see }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const now = useNow();
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const height = Math.round((rows[0]?.why === undefined ? HEIGHT : HIT_HEIGHT) * rem);
  const { first, last, reveal } = useInSight(scroller, rows.length, height);
  useEffect(() => see(first, last), [first, last, see]);
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
  // Keys stay with the list: a row that leaves its sight would take them along. And what scrolls under the pointer takes the click
  // away from its row.
  const onMouseDown = (event: MouseEvent): void => {
    if (indexOf(event.target) === -1) return;
    event.preventDefault();
    scroller.current?.focus({ preventScroll: true });
  };
  return (
    // The listbox itself is the one tab stop; its options are pointed at.
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
        {rows.slice(first, last + 1).map(({ key, expires_at: end, why, snippet }, place) => (
          <FactRow
            key={key}
            factKey={key}
            end={end}
            why={why}
            snippet={snippet}
            now={now}
            index={first + place}
            of={rows.length}
            height={height}
            selected={first + place === at}
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

/**
 * The value is not here: it is opened only when its fact is selected. Made again only when something in it has changed: the list is with
 * every letter of a search and every frame of a scroll.
 */
const FactRow = memo(function FactRow(row: RowProps) {
  const { factKey, end, why, snippet, index, height } = row;
  const left = timeLeft(end, row.now);
  const cut = factKey.lastIndexOf('/') + 1;
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
        {factKey.slice(0, cut)}
        <strong>{factKey.slice(cut)}</strong>
      </span>
      {row.unsaved && <span className="unsaved">not saved</span>}
      <time dateTime={end} title={fullDate(end)} data-soon={left.soon || undefined}>
        {left.soon && <Clock aria-hidden="true" />}
        {left.label}
      </time>
      {snippet !== undefined && (
        <span className="snippet">
          <Found text={snippet} why={why ?? ''} />
        </span>
      )}
      {why !== undefined && <span className="why">{reasonOf(why)}</span>}
    </div>
  );
});
