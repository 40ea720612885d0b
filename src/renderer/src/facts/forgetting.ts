import { Failure } from '../../../contract/failure.ts';
import { REMEMBER_AGAIN } from '../../../contract/limits.ts';
import type { Request } from '../../../contract/operations.ts';
import { useMemory } from '../memory-context.tsx';
import { useToast } from '../ui/toast.tsx';
import { secondsLeft } from './lifetime.ts';

/** The memory, and how what was forgotten comes back to it. */
function useAgain() {
  const { ask, bridge, subject } = useMemory();
  const again = async (fact: Request<'remember'>): Promise<void> => {
    const crossed = await bridge.call(subject, REMEMBER_AGAIN, fact);
    if (!crossed.ok) throw new Failure(crossed.code, crossed.message);
  };
  return { ask, again };
}

/**
 * Forgets one fact for good, and can take it back for eight seconds: what it said is in this window's memory until then and
 * nowhere else, and is remembered again for the time that was left (R-FORGET-13).
 */
export function useForgetting(): (key: string) => Promise<void> {
  const { ask, again } = useAgain();
  const { say } = useToast();
  const failed = (error: unknown): void => say({ text: (error as Error).message });
  return async (key) => {
    try {
      const { value, category, tags, expires_at: end } = await ask('recall', { key });
      const { deleted } = await ask('forget', { scope: `key:${key}` });
      if (deleted === 0) return say({ text: 'It was gone already.' });
      const undo = (): void => {
        again({ key, value, category, tags, ttl_seconds: secondsLeft(end, Date.now()) }).then(
          () => say({ text: 'Remembered again. It counts as written by the window now, without its history.' }, 4000),
          // What it said is nowhere else.
          (refused: Error) => say({ text: refused.message, about: key, action: { name: 'Try again', run: undo } }),
        );
      };
      say({ text: 'Forgotten.', about: key, action: { name: 'Undo', run: undo } });
    } catch (error) {
      failed(error);
    }
  };
}
