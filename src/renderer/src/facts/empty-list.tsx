import type { FactsFilter, Place } from '../place.ts';
import { Button } from '../ui/button.tsx';
import { filterName } from './filter.ts';

interface Props {
  readonly filter: FactsFilter;
  readonly words: string;
  readonly go: (place: Place) => void;
  readonly clear: () => void;
}

export function EmptyList({ filter, words, go, clear }: Props) {
  const name = filterName(filter);
  if (words === '' && name === undefined) {
    return (
      <div className="empty">
        <p>No facts yet.</p>
        <p>Connect an agent and tell it something to remember.</p>
        <Button label="Connect an agent" onClick={() => go({ at: 'clients' })} />
      </div>
    );
  }
  const facts = name === undefined ? 'No facts' : `No facts ${name}`;
  return (
    <div className="empty">
      <p>
        {words === '' ? (
          `${facts}.`
        ) : (
          <>
            {facts} match “<em>{words}</em>”.
          </>
        )}
      </p>
      <Button label={words === '' ? 'Show all' : 'Clear search'} onClick={clear} />
    </div>
  );
}
