import { useState } from 'react';
import { type Labels, reasonFor } from './ui/labels.ts';

export interface Doing {
  readonly busy: boolean;
  /** Why it did not work, in words. */
  readonly failure: string | undefined;
  /** Undefined when it did not work. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T | undefined>;
}

const NONE: Labels = {};

/** Something that takes a moment: it is not begun twice, and what went wrong is kept to be said, by the labels of its form. */
export function useDoing(labels = NONE): Doing {
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
        setFailure(reasonFor(error, labels));
        return undefined;
      } finally {
        setBusy(false);
      }
    },
  };
}
