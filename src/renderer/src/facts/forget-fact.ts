import { Failure } from '../../../contract/failure.ts';
import { useMemory } from '../memory-context.tsx';
import { useToast } from '../ui/toast.tsx';

/**
 * Returns a function that forgets one fact. For eight seconds, a toast offers Undo. Meanwhile, Helmdeck Memory keeps the fact in
 * RAM, so that Undo can restore the fact with its author, times and history (R-FORGET-13).
 */
export function useForgetFact(onRestored: (key: string) => void): (key: string) => Promise<void> {
  const { call } = useMemory();
  const { showToast } = useToast();
  return async (key) => {
    const undo = (handle: string): Promise<void> =>
      call('undoForget', { undo: handle }).then(
        () => {
          onRestored(key);
          showToast({ text: 'The fact was restored with its author and history.' }, 4000);
        },
        (error: Error) => {
          const tooLate = error instanceof Failure && error.code === 'not_found';
          const retry = { name: 'Try again', run: () => void undo(handle) };
          showToast({ text: error.message, about: key, ...(!tooLate && { action: retry }) });
        },
      );
    try {
      const { deleted, undo: handle } = await call('forget', { scope: `key:${key}` });
      if (deleted === 0) return showToast({ text: 'This fact was already deleted.' });
      const action = handle === undefined ? {} : { action: { name: 'Undo', run: () => void undo(handle) } };
      showToast({ text: 'Forgotten.', about: key, ...action });
    } catch (error) {
      showToast({ text: (error as Error).message });
    }
  };
}
