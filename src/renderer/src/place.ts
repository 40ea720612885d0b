/** The open page, with its filter or its opened pack or pipeline. */
export type Place =
  | {
      readonly at: 'facts';
      readonly filter: FactsFilter;
      /** The fact to open first. */
      readonly opened?: string;
    }
  | { readonly at: 'packs'; readonly opened?: OpenedPack }
  | { readonly at: 'inbox' | 'activity' | 'learned' | 'clients' | 'embeddings' | 'settings' };

export type OpenedPack = { readonly pack: string } | { readonly pipeline: string };

/** At most one field is set. "Forget all" uses the filter as its `forget` scope, and a scope has only one criterion. */
export interface FactsFilter {
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** Maximum remaining lifetime of the shown facts, in seconds. */
  readonly expiring_within?: number;
}
