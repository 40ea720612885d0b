import { type FormEvent, useState } from 'react';
import { type Labels, errorText } from './ui/labels.ts';

export interface Task {
  readonly busy: boolean;
  readonly failure: string | undefined;
  /** Resolves with undefined if the work fails. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T | undefined>;
  /** Returns a submit handler that runs the work. */
  readonly submit: (work: () => Promise<unknown>) => (event: FormEvent) => void;
}

const NO_LABELS: Labels = {};

/** Tracks an asynchronous action of a form or button. In error messages, `labels` replace the API names of fields. */
export function useTask(labels = NO_LABELS): Task {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const run = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
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
  };
  const submit = (work: () => Promise<unknown>) => (event: FormEvent) => {
    event.preventDefault();
    void run(work);
  };
  return { busy, failure, run, submit };
}
