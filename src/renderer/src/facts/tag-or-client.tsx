import type { RefObject } from 'react';
import { useOperation } from '../memory-context.tsx';
import type { FactsFilter } from '../place.ts';

interface Props {
  readonly ref: RefObject<HTMLSelectElement | null>;
  readonly filter: FactsFilter;
  readonly show: (filter: FactsFilter) => void;
  /**
   * True once the list has loaded. The menu requests its names only then, because the request reads every fact and would delay
   * the list.
   */
  readonly ready: boolean;
}

/** A menu that filters the list by a tag or a client (R-SEEK-05). */
export function TagOrClient({ ref, filter: { tag, client }, show, ready }: Props) {
  const { data } = useOperation('names', {}, ready);
  const tags = sortedNames(data?.tags, tag);
  const clients = sortedNames(data?.clients, client);
  if (clients.length === 0) return undefined;
  const selected = tag === undefined ? (client === undefined ? '' : `client:${client}`) : `tag:${tag}`;
  return (
    <select
      ref={ref}
      className="names"
      aria-label="Tag or client"
      value={selected}
      onChange={({ target }) => show(filterOf(target.value))}
    >
      <option value="">{selected === '' ? 'Tag or client' : 'All facts'}</option>
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

/** Splits a value such as `tag:a:b` at its first colon, because names can contain colons. */
function filterOf(value: string): FactsFilter {
  const at = value.indexOf(':');
  return at === -1 ? {} : { [value.slice(0, at)]: value.slice(at + 1) };
}

function sortedNames(counts: readonly { readonly name: string }[] = [], selected?: string): string[] {
  const names = new Set([...counts.map(({ name }) => name), ...(selected === undefined ? [] : [selected])]);
  return [...names].toSorted((one, other) => one.localeCompare(other));
}
