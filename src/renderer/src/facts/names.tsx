import type { RefObject } from 'react';
import type { FactsFilter } from '../place.ts';
import { readQuestion } from './question.ts';
import { useNewest } from './rows.ts';

/** Nobody reads more of a kind; the search takes any name. */
const MOST = 50;

interface Props {
  readonly ref: RefObject<HTMLSelectElement | null>;
  readonly filter: FactsFilter;
  readonly show: (filter: FactsFilter) => void;
}

/** Tags and clients to choose from: the most used of the newest facts, and the one that is chosen. */
export function Names({ ref, filter: { tag, client }, show }: Props) {
  const facts = useNewest();
  const tags = mostUsed(
    facts.flatMap((fact) => fact.tags),
    tag,
  );
  const clients = mostUsed(
    facts.map((fact) => fact.client),
    client,
  );
  if (clients.length === 0) return undefined;
  const chosen = tag === undefined ? (client === undefined ? '' : `client:${client}`) : `tag:${tag}`;
  return (
    <select
      ref={ref}
      className="names"
      aria-label="Tag or client"
      value={chosen}
      onChange={({ target }) => show(readQuestion(target.value).only ?? {})}
    >
      <option value="">{chosen === '' ? 'Tag or client' : 'All facts'}</option>
      <Group label="Tags" kind="tag" names={tags} />
      <Group label="Clients" kind="client" names={clients} />
    </select>
  );
}

function Group({ label, kind, names }: { label: string; kind: 'tag' | 'client'; names: readonly string[] }) {
  if (names.length === 0) return undefined;
  return (
    <optgroup label={label}>
      {names.map((name) => (
        <option key={name} value={`${kind}:${name}`}>
          {name}
        </option>
      ))}
    </optgroup>
  );
}

/** A to Z. */
function mostUsed(names: readonly string[], chosen: string | undefined): string[] {
  const uses = Map.groupBy(names, (name) => name);
  const most = [...uses].toSorted(([, one], [, other]) => other.length - one.length).slice(0, MOST);
  return [...new Set([...most.map(([name]) => name), ...(chosen === undefined ? [] : [chosen])])].toSorted((one, other) =>
    one.localeCompare(other),
  );
}
