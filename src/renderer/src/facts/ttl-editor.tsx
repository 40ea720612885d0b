import { useEffect, useRef, useState } from 'react';
import { TTL } from '../../../contract/limits.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { fullDate } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { dateField, expiryRange, PRESETS, secondsUntil } from './lifetime.ts';

const DATE = 'date';
const LABELS = { ttl_seconds: 'Lifetime' };

interface Props {
  readonly factKey: string;
  /** The element next to which the popover appears. */
  readonly anchor: 'row' | 'button';
  readonly close: () => void;
  readonly onSaved: (end: string) => void;
}

/** A popover that sets the lifetime of a fact to a preset or a date. Shows the new expiry before the owner saves. */
export function TtlEditor({ factKey, anchor, close, onSaved }: Props) {
  const { call } = useMemory();
  const [now] = useState(() => Date.now());
  const [selected, setSelected] = useState<string>('90 days');
  const [date, setDate] = useState(() => dateField(now + TTL.default * 1000));
  const { failure, submit } = useTask(LABELS);
  const popover = useRef<HTMLFormElement>(null);
  useEffect(() => {
    popover.current?.showPopover();
    popover.current?.querySelector<HTMLInputElement>('input:checked')?.focus();
  }, []);
  const { first, last } = expiryRange(now);
  const seconds = selected === DATE ? secondsUntil(date, now) : PRESETS.find(({ name }) => name === selected)?.seconds;
  const save = async (): Promise<void> => {
    if (seconds === undefined) return;
    const { expires_at: end } = await call('patch', { key: factKey, ttl_seconds: seconds });
    popover.current?.hidePopover();
    onSaved(end);
  };
  return (
    <form
      ref={popover}
      popover="auto"
      className="popover"
      data-anchor={anchor}
      aria-label={`Lifetime of ${factKey}`}
      onSubmit={(event) => submit(save)(event)}
      onToggle={({ newState }) => {
        if (newState === 'closed') close();
      }}
    >
      <fieldset>
        <legend>Lifetime</legend>
        {PRESETS.map(({ name }) => (
          <label key={name}>
            <input type="radio" name="lifetime" checked={selected === name} onChange={() => setSelected(name)} />
            {name}
          </label>
        ))}
        <label>
          <input type="radio" name="lifetime" checked={selected === DATE} onChange={() => setSelected(DATE)} />
          Until
          <input
            type="date"
            aria-label="Day"
            min={first}
            max={last}
            value={date}
            onFocus={() => setSelected(DATE)}
            onChange={({ target }) => setDate(target.value)}
          />
        </label>
      </fieldset>
      <output>
        {seconds === undefined ? 'Choose a day from tomorrow to a year from now.' : `Expires ${fullDate(now + seconds * 1000)}`}
      </output>
      <ErrorText text={failure} />
      <p className="buttons">
        <Button label="Cancel" onClick={() => popover.current?.hidePopover()} />
        <Button label="Save" type="submit" look="primary" disabled={seconds === undefined} />
      </p>
    </form>
  );
}
