/** What a caller hears and may say while something runs for them. */
export interface During {
  /**
   * Who asks one question after the other, as over one connection; one of its own for each question where many may be under way at
   * once. Without it the question comes from within, or is rarely one of many, and waits only where much is being done.
   */
  readonly asker?: object;
  /** Aborted when they give up. */
  readonly signal?: AbortSignal;
  progress?(done: number, of?: number, saying?: string): void;
}
