import type { Scope } from '../../contract/forget.ts';
import { isWrittenFor } from './entry.ts';
import type { Entry, Selection } from './store.ts';

/** The selection of a scope, the same for every surface. */
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
    // Keys of audit rows are `pack_history/<pack>/<time>`, those of cache rows `<pack>/<hash>`.
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
        matches: (entry, kind) => isWrittenFor(entry.author, scope.name) && (kind === 'fact' || isOfPipelines(entry, scope.name)),
      };
  }
}

/** Pipelines, their earlier versions, records of runs, and entries that the client's pipelines wrote when others ran them. */
const isOfPipelines = ({ category, author }: Entry, client: string): boolean =>
  category.startsWith('pipeline:') || category === 'pipeline_history' || author.definedBy === client;
