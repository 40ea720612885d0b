import { useState } from 'react';
import type { InboxItem } from '../../../contract/inbox.ts';
import { ChangedText } from '../facts/changed-text.tsx';
import { useTask } from '../task.ts';
import { duration, fullDate, timeLeft, useNow } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { MarkNote } from '../ui/mark-note.tsx';
import { useScrolls } from '../ui/scrolls.ts';
import { When } from '../ui/when.tsx';
import { nameOf, Parts, requestText, Sentence } from './request.tsx';

interface Props {
  readonly item: InboxItem;
  /** The current item has the focus, or had it last. The keyboard shortcuts concern this item. */
  readonly isCurrent: boolean;
  readonly setCurrent: () => void;
  readonly keep: () => Promise<void>;
  readonly edit: () => void;
  readonly drop: () => Promise<void>;
}

/** Shows one item of the Inbox: the change, its author, and the buttons that keep or drop the item. */
export function InboxCard({ item, isCurrent, setCurrent, ...commands }: Props) {
  const { id, operation, value, marked } = item;
  const heading = `inbox-${id}`;
  const name = nameOf(item);
  const [shown, setShown] = useState(false);
  const isFact = operation === 'remember' || operation === 'patch';
  // "Keep" would be misleading for a request to delete something.
  const verb = isFact ? 'Keep' : 'Allow';
  const { busy, failure, run } = useTask();
  const keep = (): void => void run(commands.keep);
  const drop = (): void => void run(commands.drop);
  // Only a fact can be edited.
  const edit = operation === 'remember' ? commands.edit : undefined;
  useActions(
    isCurrent && !busy
      ? [
          { name: `${verb} this item`, keys: ['a'], run: keep },
          ...(edit ? [{ name: 'Edit this item and keep it…', keys: ['e'], run: edit }] : []),
          { name: 'Drop this item', keys: ['d', 'Backspace', 'Delete'], run: drop },
        ]
      : [],
  );
  return (
    <li>
      {/* The item handles the focus events of its buttons. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <article
        className="card"
        aria-labelledby={heading}
        aria-current={isCurrent || undefined}
        tabIndex={-1}
        onFocus={setCurrent}
      >
        <h2 id={heading}>
          <Sentence item={item} />
        </h2>
        <Origin item={item} verb={verb.toLowerCase()} />
        {marked !== undefined && <MarkNote mark={marked} />}
        <Change item={item} />
        {isFact && <Details item={item} />}
        <Parts item={item} />
        {value === undefined && (
          <p>
            <Button
              label={shown ? 'Hide the request' : 'Show the whole request'}
              look="link"
              aria-expanded={shown}
              onClick={() => setShown(!shown)}
            />
          </p>
        )}
        {shown && <pre className="output">{requestText(item)}</pre>}
        <ErrorText text={failure} />
        <p className="buttons">
          <Button label={verb} look="primary" aria-label={`${verb}: ${name}`} disabled={busy} onClick={keep} />
          {edit && <Button label="Edit and keep…" aria-label={`Edit and keep… ${name}`} disabled={busy} onClick={edit} />}
          <Button label="Drop" look="danger" aria-label={`Drop: ${name}`} disabled={busy} onClick={drop} />
        </p>
      </article>
    </li>
  );
}

function Origin({ item, verb }: { item: InboxItem; verb: string }) {
  const { source, client, defined_by: definedBy, created_at: created, expires_at: expires } = item;
  const left = timeLeft(expires, useNow());
  return (
    <p className="meta">
      {source === 'capture' ? 'Captured from what you said to ' : 'Held back from '}
      <strong>
        <bdi>{client}</bdi>
      </strong>
      {definedBy !== undefined && (
        <>
          {' '}
          through a pipeline of <bdi>{definedBy}</bdi>
        </>
      )}
      , <When at={created} />.{' '}
      <span className={left.soon ? 'warned' : undefined} title={fullDate(expires)}>
        Dropped in {left.long} unless you {verb} it.
      </span>
    </p>
  );
}

/** Shows the new value. If a value is stored already, shows the difference between the two. */
function Change({ item }: { item: InboxItem }) {
  const [place, scrolls] = useScrolls<HTMLDivElement>();
  const [value, current] = [item.value, item.current].map((text) => (item.marked === 'hidden' ? text && reveal(text) : text));
  if (value === undefined && current === undefined) return undefined;
  return (
    // A group, not a region: a region needs a name that no other region of the page has.
    <div ref={place} className="value" {...(scrolls && { role: 'group', 'aria-label': `Value of ${nameOf(item)}`, tabIndex: 0 })}>
      {value === undefined || current === undefined || value === current ? (
        (value ?? current)
      ) : (
        <ChangedText before={current} after={value} />
      )}
    </div>
  );
}

/** Characters that a person cannot see, except spaces and line breaks. */
const INVISIBLE = /[\p{Cc}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Cf}](?<![\t\n\r])/gu;

/** Spells the characters that a person cannot see, because the owner must know what to approve. */
const reveal = (text: string): string =>
  text.replace(INVISIBLE, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);

/** Shows the category, tags and lifetime that the fact would have. */
function Details({ item: { operation, category, tags = [], ttl_seconds: lifetime } }: { item: InboxItem }) {
  const names = [...(category === undefined ? [] : [category]), ...tags];
  return (
    <>
      {operation === 'patch' && <p className="quiet">The value stays as it is. The new details are:</p>}
      {names.length > 0 && (
        <ul className="tags" aria-label="Category and tags">
          {names.map((name, index) => (
            <li key={`${index} ${name}`} className="chip">
              {name}
            </li>
          ))}
        </ul>
      )}
      {lifetime !== undefined && <p className="quiet">Expires {duration(lifetime)} after you keep it.</p>}
    </>
  );
}
