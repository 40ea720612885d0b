/** What a caller hears and may say while something runs for them. */
export interface During {
  /**
   * Who asks one question after the other, as over one connection; one of its own for each question where nobody knows. Without it
   * the question comes from within.
   */
  readonly asker?: object;
  /** Aborted when they give up. */
  readonly signal?: AbortSignal;
  progress?(done: number, of?: number, saying?: string): void;
}
