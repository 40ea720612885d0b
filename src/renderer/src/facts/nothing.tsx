import type { FactsFilter, Place } from '../place.ts';
import { filterName } from './question.ts';

interface Props {
  readonly filter: FactsFilter;
  readonly words: string;
  readonly go: (place: Place) => void;
  readonly clear: () => void;
}

/** What is true where no fact is shown, and the one next step. */
export function Nothing({ filter, words, go, clear }: Props) {
  const name = filterName(filter);
  if (words === '' && name === undefined) {
    return (
      <div className="empty">
        <p>Nothing remembered yet.</p>
        <p>Connect an agent and tell it something worth keeping.</p>
        <button type="button" className="button" onClick={() => go({ at: 'clients' })}>
          Connect an agent
        </button>
      </div>
    );
  }
  return (
    <div className="empty">
      <p>{words === '' ? `No fact is ${name}.` : <Unmatched words={words} name={name} />}</p>
      <button type="button" className="button" onClick={clear}>
        {words === '' ? 'Show all' : 'Clear'}
      </button>
    </div>
  );
}

function Unmatched({ words, name }: { words: string; name: string | undefined }) {
  return (
    <>
      No fact {name} matches <em>{words}</em>.
    </>
  );
}
