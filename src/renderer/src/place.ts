/** Where the owner is. Facts have a filter of their own; the others are pages. */
export type Place =
  | { readonly at: 'facts'; readonly filter: FactsFilter }
  | { readonly at: 'packs'; readonly opened?: OpenedPack }
  | { readonly at: 'activity' | 'learned' | 'clients' | 'embeddings' | 'settings' };

/** A pack or a pipeline that is shown by itself. */
export type OpenedPack = { readonly pack: string } | { readonly pipeline: string };

/** One at a time: what a filter shows is what can be forgotten at once, and a scope names one thing. */
export interface FactsFilter {
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** Seconds within which they go. */
  readonly expiring_within?: number;
}
