import { EXPIRING_SOON } from '../../contract/limits.ts';
import { useAsked, useMemory } from './memory-context.tsx';
import type { Place } from './place.ts';
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

/** What there is, and where else one can go. */
export function Sidebar({ place, go, open }: Props) {
  const { subject } = useMemory();
  const { data: mine } = useAsked('myMemory', {});
  const { data: all } = useAsked('callers', {});
  const { data: status } = useAsked('status', {});
  const subjects = [...new Set([subject, 'me', ...(all?.callers.map(({ namespace }) => namespace) ?? [])])];
  useActions([
    { name: 'Go to Facts', keys: ['mod+1'], whileTyping: true, run: () => go({ at: 'facts', filter: {} }) },
    ...PAGES.map(([at, title, key]): Action => ({
      name: `Go to ${title}`,
      ...(key !== undefined && { keys: [key] }),
      whileTyping: true,
      run: () => go({ at }),
    })),
  ]);
  const facts = place.at === 'facts' ? place.filter : undefined;
  return (
    <nav className="sidebar" aria-label="Sections">
      <h1 className="unseen">The memory of {subject}</h1>
      {subjects.length > 1 ? (
        <select aria-label="Whose memory" value={subject} onChange={({ target }) => open(target.value)}>
          {subjects.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      ) : (
        <p className="subject">{subject}</p>
      )}
      <ul>
        <Entry
          here={facts !== undefined && Object.keys(facts).length === 0}
          count={status?.facts}
          go={() => go({ at: 'facts', filter: {} })}
        >
          All
        </Entry>
        <Entry
          here={facts?.expiring_within !== undefined}
          count={status?.expiring_soon}
          go={() => go({ at: 'facts', filter: { expiring_within: EXPIRING_SOON } })}
        >
          Expiring soon
        </Entry>
      </ul>
      {mine && mine.categories.length > 0 && (
        <>
          <h2 className="group">Categories</h2>
          <ul className="categories">
            {mine.categories.map(({ name, count }) => (
              <Entry
                key={name}
                here={facts?.category === name}
                count={count}
                go={() => go({ at: 'facts', filter: { category: name } })}
              >
                {name}
              </Entry>
            ))}
            {mine.more_categories !== undefined && (
              <li className="entry quiet">and {mine.more_categories.toLocaleString()} more</li>
            )}
          </ul>
        </>
      )}
      <ul>
        {PAGES.map(([at, title]) => (
          <Entry key={at} here={place.at === at} go={() => go({ at })}>
            {title}
          </Entry>
        ))}
      </ul>
    </nav>
  );
}

interface EntryProps {
  readonly here: boolean;
  readonly go: () => void;
  readonly children: string;
  readonly count?: number | undefined;
}

function Entry({ here, count, go, children }: EntryProps) {
  return (
    <li>
      <button type="button" className="entry" aria-current={here ? 'page' : undefined} onClick={go}>
        <span title={children}>{children}</span>
        {count !== undefined && <span className="count">{count.toLocaleString()}</span>}
      </button>
    </li>
  );
}
