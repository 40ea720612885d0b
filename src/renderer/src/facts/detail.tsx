import { useEffect, useRef } from 'react';
import type { FactDetail as Fact } from '../../../contract/fact.ts';
import { Failure } from '../../../contract/failure.ts';
import { useAsked } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';
import { dayOf, fullDate, timeLeft, useNow } from '../time.ts';
import { useDraft } from './drafts.tsx';
import { FactEditor } from './editor.tsx';
import { reasonOf } from './found.tsx';
import { FactHistory } from './history.tsx';
import { Value } from './value.tsx';

interface Props {
  readonly factKey: string;
  /** Of a hit: which words were found where. */
  readonly why: string | undefined;
  readonly show: (filter: FactsFilter) => void;
  readonly history: boolean;
  readonly toggleHistory: () => void;
  /** What its buttons do. */
  readonly acts: {
    readonly copy: () => void;
    readonly renew: () => void;
    readonly edit: () => void;
    readonly forget: () => void;
  };
}

/** One fact in full: what it says, who said so, when it goes, and what it said before. */
export function FactDetail({ factKey, why, show, history, toggleHistory, acts }: Props) {
  const { data, error } = useAsked('recall', { key: factKey });
  const [draft, keep] = useDraft(factKey);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.scrollIntoView(), []);
  // What is kept from before may be another fact, or one that is gone.
  const fact = error === null && data?.key === factKey ? data : undefined;
  const gone = error instanceof Failure && error.code === 'not_found';
  return (
    <>
      <h2 ref={heading}>{factKey}</h2>
      {error && !(draft && gone) && (
        <p className="failure" role="alert">
          {error.message}
        </p>
      )}
      {draft ? (
        <FactEditor draft={draft} present={fact} gone={gone} keep={keep} />
      ) : (
        fact && <Value key={fact.updated_at} text={fact.value} />
      )}
      {fact && (
        <>
          {!draft && <Tags fact={fact} show={show} />}
          <Provenance fact={fact} show={show} />
          {why !== undefined && <p className="meta">Found: {reasonOf(why)}</p>}
          <p className="buttons">
            <button type="button" className="button" onClick={acts.copy}>
              Copy
            </button>
            <button type="button" className="button renew" onClick={acts.renew}>
              Change lifetime
            </button>
            {!draft && (
              <button type="button" className="button" onClick={acts.edit}>
                Edit
              </button>
            )}
            <button type="button" className="button" aria-expanded={history} onClick={toggleHistory}>
              History
            </button>
            <button type="button" className="button danger" onClick={acts.forget}>
              Forget
            </button>
          </p>
          {history && <FactHistory fact={fact} />}
        </>
      )}
    </>
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
  const { client, defined_by: definedBy, created_at: made, updated_at: changed, expires_at: end } = fact;
  const left = timeLeft(end, useNow());
  return (
    <>
      <p className="meta">
        Written by{' '}
        <button type="button" className="inline" onClick={() => show({ client })}>
          {client}
        </button>
        {definedBy !== undefined && (
          <>
            , by a pipeline of{' '}
            <button type="button" className="inline" onClick={() => show({ client: definedBy })}>
              {definedBy}
            </button>
          </>
        )}
        , <time dateTime={changed}>{fullDate(changed)}</time>
      </p>
      {made !== changed && (
        <p className="meta">
          First remembered <time dateTime={made}>{dayOf(made)}</time>
        </p>
      )}
      <p className="meta" data-soon={left.soon || undefined}>
        Goes{' '}
        <time dateTime={end} title={fullDate(end)}>
          {left.soon ? fullDate(end) : dayOf(end)}
        </time>
        , in {left.label}
      </p>
    </>
  );
}
