import type { RefObject } from 'react';
import { useAsked } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';

interface Props {
  readonly ref: RefObject<HTMLSelectElement | null>;
  readonly filter: FactsFilter;
  readonly show: (filter: FactsFilter) => void;
  /** Not before there is something else to look at: what it asks for reads every fact once. */
  readonly ready: boolean;
}

/** All tags and clients to choose from, and the one that is chosen. */
export function Names({ ref, filter: { tag, client }, show, ready }: Props) {
  const { data } = useAsked('names', {}, ready);
  const tags = offered(data?.tags, tag);
  const clients = offered(data?.clients, client);
  if (clients.length === 0) return undefined;
  const chosen = tag === undefined ? (client === undefined ? '' : `client:${client}`) : `tag:${tag}`;
  return (
    <select
      ref={ref}
      className="names"
      aria-label="Tag or client"
      value={chosen}
      onChange={({ target }) => show(filterOf(target.value))}
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

/** A name may hold colons and blanks of its own. */
function filterOf(value: string): FactsFilter {
  const at = value.indexOf(':');
  return at === -1 ? {} : { [value.slice(0, at)]: value.slice(at + 1) };
}

/** A to Z. */
function offered(counts: readonly { readonly name: string }[] = [], chosen?: string): string[] {
  const names = new Set([...counts.map(({ name }) => name), ...(chosen === undefined ? [] : [chosen])]);
  return [...names].toSorted((one, other) => one.localeCompare(other));
}
