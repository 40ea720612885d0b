import { EXPIRING_SOON } from '../../contract/limits.ts';
import { useMemory, useOperation } from './memory-context.tsx';
import type { FactsFilter, Place } from './place.ts';
import type { Action } from './ui/action.ts';
import { useActions } from './ui/actions.tsx';

const PAGES = [
  ['activity', 'Activity', 'mod+2'],
  ['learned', 'Learned', 'mod+3'],
  ['packs', 'Packs', 'mod+4'],
  ['clients', 'Connect', 'mod+5'],
  ['embeddings', 'Embeddings', 'mod+6'],
  ['settings', 'Settings', 'mod+,'],
] as const;

interface Props {
  readonly place: Place;
  readonly go: (place: Place) => void;
  readonly open: (subject: string) => void;
}

export function Sidebar({ place, go, open }: Props) {
  const { subject } = useMemory();
  const { data: overview } = useOperation('myMemory', {});
  const { data: all } = useOperation('callers', {});
  const { data: status } = useOperation('status', {});
  const subjects = [...new Set([subject, 'me', ...(all?.callers.map(({ namespace }) => namespace) ?? [])])];
  const showFacts = (filter: FactsFilter) => (): void => go({ at: 'facts', filter });
  useActions([
    { name: 'Go to Facts', keys: ['mod+1'], whileTyping: true, run: showFacts({}) },
    { name: 'Go to Inbox', keys: ['mod+7'], whileTyping: true, run: () => go({ at: 'inbox' }) },
    ...PAGES.map(([at, title, key]): Action => ({
      name: `Go to ${title}`,
      keys: [key],
      whileTyping: true,
      run: () => go({ at }),
    })),
  ]);
  const filter = place.at === 'facts' ? place.filter : undefined;
  return (
    <nav className="sidebar" aria-label="Sections">
      <h1 className="visually-hidden">Memory of {subject}</h1>
      {subjects.length > 1 ? (
        <select aria-label="Memory" value={subject} onChange={({ target }) => open(target.value)}>
          {subjects.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      ) : (
        <p className="subject">{subject}</p>
      )}
      <ul>
        <Entry current={filter !== undefined && Object.keys(filter).length === 0} count={status?.facts} go={showFacts({})}>
          All
        </Entry>
        <Entry
          current={filter?.expiring_within !== undefined}
          count={status?.expiring_soon}
          go={showFacts({ expiring_within: EXPIRING_SOON })}
        >
          Expiring soon
        </Entry>
        <Entry current={place.at === 'inbox'} count={status?.inbox || undefined} go={() => go({ at: 'inbox' })}>
          Inbox
        </Entry>
      </ul>
      {overview && overview.categories.length > 0 && (
        <>
          <h2 className="group">Categories</h2>
          <ul className="categories">
            {overview.categories.map(({ name, count }) => (
              <Entry key={name} current={filter?.category === name} count={count} go={showFacts({ category: name })}>
                {name}
              </Entry>
            ))}
            {overview.more_categories !== undefined && (
              <li className="entry quiet">and {overview.more_categories.toLocaleString()} more</li>
            )}
          </ul>
        </>
      )}
      <ul>
        {PAGES.map(([at, title]) => (
          <Entry key={at} current={place.at === at} go={() => go({ at })}>
            {title}
          </Entry>
        ))}
      </ul>
    </nav>
  );
}

interface EntryProps {
  readonly current: boolean;
  readonly go: () => void;
  readonly children: string;
  readonly count?: number | undefined;
}

function Entry({ current, count, go, children }: EntryProps) {
  return (
    <li>
      <button type="button" className="entry" aria-current={current ? 'page' : undefined} onClick={go}>
        <span title={children}>{children}</span>
        {count !== undefined && <span className="count">{count.toLocaleString()}</span>}
      </button>
    </li>
  );
}
