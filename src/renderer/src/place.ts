/** The page that is shown, with its filter or opened item. */
export type Place =
  | { readonly at: 'facts'; readonly filter: FactsFilter }
  | { readonly at: 'packs'; readonly opened?: OpenedPack }
  | { readonly at: 'activity' | 'learned' | 'clients' | 'embeddings' | 'settings' };

export type OpenedPack = { readonly pack: string } | { readonly pipeline: string };

/** Has at most one field: "Forget all" covers what the filter shows, and a forget scope names one thing. */
export interface FactsFilter {
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** In seconds. */
  readonly expiring_within?: number;
}
