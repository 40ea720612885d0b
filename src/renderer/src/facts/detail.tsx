import { useEffect, useRef } from 'react';
import type { FactDetail as Fact } from '../../../contract/fact.ts';
import { Failure } from '../../../contract/failure.ts';
import { useOperation } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { counted, dayOf, fullDate, timeAgo, timeLeft, useNow } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { MarkNote } from '../ui/mark-note.tsx';
import { useScrolls } from '../ui/scrolls.ts';
import { When } from '../ui/when.tsx';
import { useDraft } from './drafts.tsx';
import { FactEditor } from './editor.tsx';
import { FactHistory } from './history.tsx';
import { groupReasons } from './snippet.tsx';

interface Props {
  readonly factKey: string;
  /** Explains why the fact matched the search, such as `"deploy" in key`. Undefined if the fact is not a search result. */
  readonly why: string | undefined;
  readonly show: (filter: FactsFilter) => void;
  readonly history: boolean;
  readonly toggleHistory: () => void;
  readonly commands: {
    readonly copy: () => void;
    readonly changeLifetime: () => void;
    readonly edit: () => void;
    readonly forget: () => void;
  };
}

export function FactDetail({ factKey, why, show, history, toggleHistory, commands }: Props) {
  const { data, error } = useOperation('recall', { key: factKey });
  const [draft, setDraft] = useDraft(factKey);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.scrollIntoView(), []);
  // `data` can still be the previous fact while this fact loads, or a deleted fact after an error.
  const fact = error === null && data?.key === factKey ? data : undefined;
  const deleted = error instanceof Failure && error.code === 'not_found';
  return (
    <>
      <h2 ref={heading}>{factKey}</h2>
      {!(draft && deleted) && <ErrorText text={error?.message} />}
      {draft ? (
        <FactEditor draft={draft} present={fact} deleted={deleted} setDraft={setDraft} />
      ) : (
        fact && <Value key={fact.updated_at} text={fact.value} />
      )}
      {fact && (
        <>
          {fact.marked !== undefined && <MarkNote mark={fact.marked} />}
          {!draft && <Tags fact={fact} show={show} />}
          <Provenance fact={fact} show={show} />
          {why !== undefined && <p className="meta">Matched: {groupReasons(why)}</p>}
          <p className="buttons">
            <Button label="Copy" onClick={commands.copy} />
            <Button label="Change lifetime" className="lifetime" onClick={commands.changeLifetime} />
            {!draft && <Button label="Edit" onClick={commands.edit} />}
            <Button label="History" aria-expanded={history} onClick={toggleHistory} />
            <Button label="Forget" look="danger" onClick={commands.forget} />
          </p>
          {history && <FactHistory fact={fact} />}
        </>
      )}
    </>
  );
}

/** Shows the value of a fact. A long value scrolls separately, so that the buttons and the expiry stay visible (R-WIN-43). */
function Value({ text }: { text: string }) {
  const [place, scrolls] = useScrolls<HTMLPreElement>();
  return (
    <pre ref={place} className="value" {...(scrolls && { role: 'region', 'aria-label': 'Value', tabIndex: 0 })}>
      {text}
    </pre>
  );
}

function Tags({ fact, show }: { fact: Fact; show: Props['show'] }) {
  return (
    <ul className="tags" aria-label="Category and tags">
      <li>
        <button type="button" className="chip" onClick={() => show({ category: fact.category })}>
          {fact.category}
        </button>
      </li>
      {fact.tags.map((tag) => (
        <li key={tag}>
          <button type="button" className="chip" onClick={() => show({ tag })}>
            {tag}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Provenance({ fact, show }: { fact: Fact; show: Props['show'] }) {
  const { client, defined_by: definedBy, created_at: created, updated_at: updated, expires_at: end, shown } = fact;
  const now = useNow();
  const left = timeLeft(end, now);
  return (
    <>
      <p className="meta">
        Written by <Button label={client} look="link" onClick={() => show({ client })} />
        {definedBy !== undefined && (
          <>
            {' '}
            through a pipeline of <Button label={definedBy} look="link" onClick={() => show({ client: definedBy })} />
          </>
        )}
        , <time dateTime={updated}>{fullDate(updated)}</time>
      </p>
      {created !== updated && (
        <p className="meta">
          Created <time dateTime={created}>{dayOf(created)}</time>
        </p>
      )}
      {shown && (
        <p className="meta">
          Shown to agents {counted(shown.count, 'time')} in 30 days, last to <bdi>{shown.last_client}</bdi>{' '}
          <When at={shown.last_at} short={timeAgo(shown.last_at, now)} />
        </p>
      )}
      <p className="meta" data-soon={left.soon || undefined}>
        Expires{' '}
        <time dateTime={end} title={fullDate(end)}>
          {left.soon ? fullDate(end) : dayOf(end)}
        </time>{' '}
        ({left.long})
      </p>
    </>
  );
}
