import type { InboxItem } from '../../../contract/inbox.ts';
import type { OperationName, OperationRequest } from '../../../contract/operations.ts';
import { counted, dayOf } from '../time.ts';

/** Number of keys and packs that a sentence names. */
const NAMED = 5;

/** Returns the input of the operation that waits. The casts are safe, because Helmdeck Memory validated the input of each item. */
export const inputOf = <Name extends OperationName>({ input }: InboxItem): OperationRequest<Name> =>
  JSON.parse(input) as OperationRequest<Name>;

/** Returns a short name of the item, for the names of its buttons and for messages. */
export function nameOf(item: InboxItem): string {
  switch (item.operation) {
    case 'remember':
    case 'patch':
      return item.key ?? '';
    case 'forget':
      return item.scope ?? '';
    case 'undo':
      return `undo of ${inputOf<'undo'>(item).client}`;
    case 'import':
      return `import of ${counted(inputOf<'import'>(item).lines.length, 'line')}`;
    case 'createPipeline':
      return `pipeline ${inputOf<'createPipeline'>(item).id}`;
    case 'deletePipeline':
      return `pipeline ${inputOf<'deletePipeline'>(item).id}`;
  }
}

/** Says in one sentence what happens if the owner keeps the item. */
export function Sentence({ item }: { item: InboxItem }) {
  const { operation, key, value, current, supersedes } = item;
  switch (operation) {
    case 'remember':
      return (
        <>
          {current === undefined ? 'Store a new fact' : current === value ? 'Renew' : 'Change the value of'} <bdi>{key}</bdi>
          {supersedes !== undefined && (
            <>
              {' '}
              in place of <bdi>{supersedes}</bdi>
            </>
          )}
        </>
      );
    case 'patch':
      return (
        <>
          Change the details of <bdi>{key}</bdi>
        </>
      );
    case 'forget':
      return <Forgotten scope={item.scope ?? ''} />;
    case 'undo': {
      const { client, since } = inputOf<'undo'>(item);
      return (
        <>
          Undo what <bdi>{client}</bdi> changed since {dayOf(since)}
        </>
      );
    }
    case 'import':
      return <>Import {counted(inputOf<'import'>(item).lines.length, 'fact')}</>;
    case 'createPipeline': {
      const { id, title = id } = inputOf<'createPipeline'>(item);
      return (
        <>
          Save the pipeline <bdi>{title}</bdi>
        </>
      );
    }
    case 'deletePipeline':
      return (
        <>
          Delete the pipeline <bdi>{inputOf<'deletePipeline'>(item).id}</bdi>
        </>
      );
  }
}

/** The words for each scope of a forget request. A named scope is followed by its name. */
const SCOPES: Readonly<Record<string, string>> = {
  all: 'everything in this memory',
  facts: 'all facts',
  packs: 'what was learned from packs',
  pipelines: 'what was learned from pipelines',
  pack: 'the cache and the run records of the pack',
  pipeline: 'the run records of the pipeline',
  key: 'the fact',
  prefix: 'all facts whose key starts with',
  category: 'all facts in the category',
  tag: 'all facts with the tag',
  client: 'all facts written by',
};

function Forgotten({ scope }: { scope: string }) {
  const [kind = '', ...name] = scope.split(':');
  return (
    <>
      Forget {SCOPES[kind]} {name.length > 0 && <bdi>{name.join(':')}</bdi>}
    </>
  );
}

/** Lists what an operation on several facts, or on a pipeline, consists of. Renders nothing for other operations. */
export function Parts({ item }: { item: InboxItem }) {
  const parts = partsOf(item);
  if (!parts) return undefined;
  const { label, names } = parts;
  return (
    <p className="quiet">
      {label}:{' '}
      {names.slice(0, NAMED).map((name, index) => (
        <span key={`${index} ${name}`}>
          {index > 0 && ', '}
          <bdi>{name}</bdi>
        </span>
      ))}
      {names.length > NAMED && ` and ${(names.length - NAMED).toLocaleString()} more`}
    </p>
  );
}

function partsOf(item: InboxItem): { readonly label: string; readonly names: readonly string[] } | undefined {
  if (item.operation === 'import') return { label: 'Keys', names: inputOf<'import'>(item).lines.map(keyOfLine) };
  if (item.operation !== 'createPipeline') return undefined;
  const names = inputOf<'createPipeline'>(item).steps.map((step) => step.pack);
  return { label: 'Runs the packs', names };
}

const keyOfLine = (line: string): string => (JSON.parse(line) as { readonly key: string }).key;

/** Returns the complete request as text. The lines of an import stay JSON, one fact each. */
export const requestText = (item: InboxItem): string =>
  item.operation === 'import'
    ? inputOf<'import'>(item).lines.join('\n')
    : JSON.stringify(inputOf<typeof item.operation>(item), undefined, 2);
