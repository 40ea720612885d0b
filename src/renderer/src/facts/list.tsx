import { Clock } from 'lucide-react';
import { type KeyboardEvent, type RefObject, useEffect, useImperativeHandle, useRef } from 'react';
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
    >
      <div className="all" style={{ height: rows.length * height }}>
        {rows.slice(first, last + 1).map((row, place) => (
          <FactRow
            key={row.key}
            row={row}
            now={now}
            id={idOf(first + place)}
            place={{ index: first + place, of: rows.length, height }}
            selected={first + place === at}
            unsaved={unsaved.has(row.key)}
            open={() => open(row.key)}
            // What scrolls under the pointer takes the click away from its row.
            press={() => scroller.current?.focus({ preventScroll: true })}
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
  readonly row: Row;
  readonly now: number;
  readonly id: string;
  readonly place: { readonly index: number; readonly of: number; readonly height: number };
  readonly selected: boolean;
  readonly unsaved: boolean;
  readonly open: () => void;
  /** Keys stay with the list: a row that leaves its sight would take them along. */
  readonly press: () => void;
}

/** The value is not here: it is opened only when its fact is selected. */
function FactRow({ row, now, id, place, selected, unsaved, open, press }: RowProps) {
  const left = timeLeft(row.expires_at, now);
  const cut = row.key.lastIndexOf('/') + 1;
  return (
    // Keys reach it through the listbox.
    <div
      id={id}
      className="row"
      role="option"
      tabIndex={-1}
      aria-selected={selected}
      aria-posinset={place.index + 1}
      aria-setsize={place.of}
      style={{ height: place.height, transform: `translateY(${place.index * place.height}px)` }}
      onClick={open}
      onMouseDown={(event) => {
        event.preventDefault();
        press();
      }}
      onKeyDown={() => undefined}
    >
      <span className="key">
        {row.key.slice(0, cut)}
        <strong>{row.key.slice(cut)}</strong>
      </span>
      {unsaved && <span className="unsaved">not saved</span>}
      <time dateTime={row.expires_at} title={fullDate(row.expires_at)} data-soon={left.soon || undefined}>
        {left.soon && <Clock aria-hidden="true" />}
        {left.label}
      </time>
      {row.snippet !== undefined && (
        <span className="snippet">
          <Found text={row.snippet} why={row.why ?? ''} />
        </span>
      )}
      {row.why !== undefined && <span className="why">{reasonOf(row.why)}</span>}
    </div>
  );
}
