/** What a caller hears and may say while something runs for them. */
export interface During {
  /** Aborted when they give up. */
  readonly signal?: AbortSignal;
  progress?(done: number, of?: number, saying?: string): void;
}
