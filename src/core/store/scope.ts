import type { Scope } from '../../contract/forget.ts';
import { INBOX_CATEGORY, isWrittenFor } from './entry.ts';
import type { Entry, Selection } from './store.ts';

/** Converts the scope of a forget request to a selection of entries. All transports use this function. */
export function selectionOf(scope: Scope): Selection {
  switch (scope.kind) {
    case 'all':
      return { kinds: ['fact', 'history', 'audit', 'cache', 'pack', 'activity'] };
    case 'facts':
      return { kinds: ['fact'] };
    case 'packs':
      return { kinds: ['audit'], category: 'pack_history' };
    case 'pipelines':
      return { kinds: ['audit'], category: 'pipeline_history' };
    // Keys of audit rows have the form `pack_history/<pack>/<time>`; keys of cache rows have the form `<pack>/<hash>`.
    case 'pack':
      return {
        kinds: ['audit', 'cache'],
        matches: ({ key }, kind) => key.startsWith(kind === 'audit' ? `pack_history/${scope.name}/` : `${scope.name}/`),
      };
    case 'pipeline':
      return { kinds: ['audit'], matches: ({ key }) => key.startsWith(`pipeline_history/${scope.name}/`) };
    case 'key':
      return { kinds: ['fact'], key: scope.name };
    case 'prefix':
      return { kinds: ['fact'], matches: ({ key }) => key.startsWith(scope.name) };
    case 'category':
      return { kinds: ['fact'], category: scope.name };
    case 'tag':
      return { kinds: ['fact'], matches: ({ tags }) => tags.includes(scope.name) };
    case 'client':
      return {
        kinds: ['fact', 'audit', 'cache', 'pack'],
        matches: (entry, kind) =>
          isWrittenFor(entry.author, scope.name) &&
          (kind === 'fact' || entry.category === INBOX_CATEGORY || isOfPipelines(entry, scope.name)),
      };
  }
}

/**
 * Whether an entry belongs to a client's pipelines: a pipeline or its earlier version, a record of a run, or an entry that one of
 * the pipelines wrote when another client ran it.
 */
const isOfPipelines = ({ category, author }: Entry, client: string): boolean =>
  category.startsWith('pipeline:') || category === 'pipeline_history' || author.definedBy === client;
