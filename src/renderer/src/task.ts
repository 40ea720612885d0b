import { useState } from 'react';
import { type Labels, errorText } from './ui/labels.ts';

export interface Task {
  readonly busy: boolean;
  /** The error message of the last run. */
  readonly failure: string | undefined;
  /** Resolves with undefined if the work fails. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T | undefined>;
}

const NO_LABELS: Labels = {};

/** Tracks an asynchronous action of a form or button. Error messages name the fields by the given labels. */
export function useTask(labels = NO_LABELS): Task {
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
        setFailure(errorText(error, labels));
        return undefined;
      } finally {
        setBusy(false);
      }
    },
  };
}
