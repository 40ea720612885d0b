import { type FormEvent, useEffect, useRef, useState } from 'react';
import { TTL } from '../../../contract/limits.ts';
import { useMemory } from '../memory-context.tsx';
import { fullDate } from '../time.ts';
import { reasonFor } from '../ui/labels.ts';
import { dateField, daysOf, PRESETS, secondsUntil } from './lifetime.ts';

const DATE = 'date';
const LABELS = { ttl_seconds: 'The lifetime' };

interface Props {
  readonly factKey: string;
  /** Beside what it stands. */
  readonly by: 'row' | 'button';
  readonly close: () => void;
  readonly kept: (end: string) => void;
}

/** How long a fact stays: six lifetimes and any day within a year, and what comes of each. */
export function TtlEditor({ factKey, by, close, kept }: Props) {
  const { ask } = useMemory();
  const [now] = useState(() => Date.now());
  const [chosen, setChosen] = useState<string>('90 days');
  const [date, setDate] = useState(() => dateField(now + TTL.default * 1000));
  const [failure, setFailure] = useState<string>();
  const popover = useRef<HTMLFormElement>(null);
  useEffect(() => {
    popover.current?.showPopover();
    popover.current?.querySelector<HTMLInputElement>('input:checked')?.focus();
  }, []);
  const { first, last } = daysOf(now);
  const seconds = chosen === DATE ? secondsUntil(date, now) : PRESETS.find(({ name }) => name === chosen)?.seconds;
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    if (seconds === undefined) return;
    ask('patch', { key: factKey, ttl_seconds: seconds }).then(
      ({ expires_at: end }) => {
        popover.current?.hidePopover();
        kept(end);
      },
      (error: unknown) => setFailure(reasonFor(error, LABELS)),
    );
  };
  return (
    <form
      ref={popover}
      popover="auto"
      className="popover"
      data-by={by}
      aria-label={`Lifetime of ${factKey}`}
      onSubmit={onSubmit}
      onToggle={({ newState }) => {
        if (newState === 'closed') close();
      }}
    >
      <fieldset>
        <legend>From now</legend>
        {PRESETS.map(({ name }) => (
          <label key={name}>
            <input type="radio" name="lifetime" checked={chosen === name} onChange={() => setChosen(name)} />
            {name}
          </label>
        ))}
        <label>
          <input type="radio" name="lifetime" checked={chosen === DATE} onChange={() => setChosen(DATE)} />
          until
          <input
            type="date"
            aria-label="Day"
            min={first}
            max={last}
            value={date}
            onFocus={() => setChosen(DATE)}
            onChange={({ target }) => setDate(target.value)}
          />
        </label>
      </fieldset>
      <output>
        {seconds === undefined ? 'Choose a day from tomorrow to a year from now.' : `Goes ${fullDate(now + seconds * 1000)}`}
      </output>
      {failure !== undefined && (
        <p className="failure" role="alert">
          {failure}
        </p>
      )}
      <p className="buttons">
        <button type="button" className="button" onClick={() => popover.current?.hidePopover()}>
          Cancel
        </button>
        <button className="button primary" disabled={seconds === undefined}>
          Keep
        </button>
      </p>
    </form>
  );
}
