import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from 'react';
import { useAway } from '../away.ts';
import { useActions } from './actions.tsx';

interface Said {
  readonly text: string;
  /** What it is about, where more than one of its kind may be said. */
  readonly about?: string;
  /** What the one button does, and its name. */
  readonly action?: { readonly name: string; readonly run: () => void };
}

interface Shown extends Said {
  readonly id: number;
}

interface Toast {
  say: (said: Said, ms?: number) => void;
}

const Context = createContext<Toast | undefined>(undefined);
const SHOWN_MS = 8000;

/**
 * Says something for eight seconds: long enough to take it back. What is said next takes the place of mere words, never of a way
 * back. What it held is gone with it.
 */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [said, setSaid] = useState<readonly Shown[]>([]);
  const present = useRef<readonly Shown[]>([]);
  const count = useRef(0);
  const show = useCallback((next: readonly Shown[]): void => {
    present.current = next;
    setSaid(next);
  }, []);
  const end = useCallback((one: Shown): void => show(present.current.filter((other) => other !== one)), [show]);
  const press = useCallback(
    (one: Shown | undefined): void => {
      if (!one) return;
      end(one);
      one.action?.run();
    },
    [end],
  );
  const away = useAway() === true;
  const toast = useMemo<Toast>(
    () => ({
      say(next, ms = SHOWN_MS) {
        count.current += 1;
        const one = { ...next, id: count.current };
        show([one, ...present.current.filter(({ action }) => action)]);
        setTimeout(() => end(one), ms);
      },
    }),
    [show, end],
  );
  const act = useCallback(() => press(present.current.find(({ action }) => action)), [press]);
  return (
    <Context value={toast}>
      <UndoKey act={act} />
      {children}
      <div className="toast" role="status" aria-live="polite" aria-atomic="false" data-shown={said.length > 0 || undefined}>
        {said.map((one) => (
          <p key={one.id}>
            <span>{one.text}</span>
            {one.about !== undefined && !away && <bdi>{one.about}</bdi>}
            {one.action && (
              <button type="button" onClick={() => press(one)}>
                {one.action.name}
              </button>
            )}
          </p>
        ))}
      </div>
    </Context>
  );
}

/** The latest way back goes by a key on whichever page it is shown. Before the page, whose own actions are nearer. */
function UndoKey({ act }: { act: () => void }) {
  useActions([{ name: 'Undo', keys: ['z', 'mod+z'], run: act }]);
  return undefined;
}

export function useToast(): Toast {
  const toast = useContext(Context);
  if (!toast) throw new Error('Nothing can be said here.');
  return toast;
}
