import { Failure } from '../../../contract/failure.ts';
import { useMemory } from '../memory-context.tsx';
import { useToast } from '../ui/toast.tsx';

/**
 * Forgets one fact for good, and can undo that for eight seconds: the program holds the fact in RAM until then and brings it back
 * with its author, times and history (R-FORGET-13).
 */
export function useForgetting(): (key: string) => Promise<void> {
  const { ask } = useMemory();
  const { say } = useToast();
  const failed = (error: unknown): void => say({ text: (error as Error).message });
  return async (key) => {
    try {
      const { deleted, undo: handle } = await ask('forget', { scope: `key:${key}` });
      if (deleted === 0) return say({ text: 'It was gone already.' });
      if (handle === undefined) return say({ text: 'Forgotten.', about: key });
      const undo = (): void => {
        ask('undoForget', { undo: handle }).then(
          () => say({ text: 'Restored, with its author and history.' }, 4000),
          (refused: Error) => {
            const isOver = refused instanceof Failure && refused.code === 'not_found';
            say({ text: refused.message, about: key, ...(!isOver && { action: { name: 'Try again', run: undo } }) });
          },
        );
      };
      say({ text: 'Forgotten.', about: key, action: { name: 'Undo', run: undo } });
    } catch (error) {
      failed(error);
    }
  };
}
