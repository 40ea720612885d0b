import { useState } from 'react';

export interface Doing {
  readonly busy: boolean;
  /** Why it did not work, in words. */
  readonly failure: string | undefined;
  /** Undefined when it did not work. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T | undefined>;
}

/** Something that takes a moment: it is not begun twice, and what went wrong is kept to be said. */
export function useDoing(): Doing {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  return {
    busy,
    failure,
    async run(work) {
      setBusy(true);
      setFailure(undefined);
      try {
        return await work();
      } catch (error) {
        setFailure(error instanceof Error ? error.message : String(error));
        return undefined;
      } finally {
        setBusy(false);
      }
    },
  };
}
