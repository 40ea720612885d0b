import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from 'react';
import { useContentHidden } from '../hidden.ts';
import { useActions } from './actions.tsx';

interface Message {
  readonly text: string;
  /** The key of the fact that the message is about. */
  readonly about?: string;
  readonly action?: { readonly name: string; readonly run: () => void };
}

interface ShownMessage extends Message {
  readonly id: number;
}

interface Toast {
  showToast: (message: Message, ms?: number) => void;
}

const Context = createContext<Toast | undefined>(undefined);
const SHOWN_MS = 8000;

/**
 * Shows messages for eight seconds by default. A new message replaces earlier messages, except messages with an action such as Undo
 * (R-USE-02).
 */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [messages, setMessages] = useState<readonly ShownMessage[]>([]);
  const current = useRef<readonly ShownMessage[]>([]);
  const count = useRef(0);
  const update = useCallback((next: readonly ShownMessage[]): void => {
    current.current = next;
    setMessages(next);
  }, []);
  const remove = useCallback(
    (message: ShownMessage): void => update(current.current.filter((other) => other !== message)),
    [update],
  );
  const runAction = useCallback(
    (message: ShownMessage | undefined): void => {
      if (!message) return;
      remove(message);
      message.action?.run();
    },
    [remove],
  );
  const hidden = useContentHidden() === true;
  const toast = useMemo<Toast>(
    () => ({
      showToast(next, ms = SHOWN_MS) {
        count.current += 1;
        const message = { ...next, id: count.current };
        update([message, ...current.current.filter(({ action }) => action)]);
        setTimeout(() => remove(message), ms);
      },
    }),
    [update, remove],
  );
  const runLatest = useCallback(() => runAction(current.current.find(({ action }) => action)), [runAction]);
  return (
    <Context value={toast}>
      <UndoShortcut run={runLatest} />
      {children}
      <div className="toast" role="status" aria-live="polite" aria-atomic="false" data-shown={messages.length > 0 || undefined}>
        {messages.map((message) => (
          <p key={message.id}>
            <span>{message.text}</span>
            {message.about !== undefined && !hidden && <bdi>{message.about}</bdi>}
            {message.action && (
              <button type="button" onClick={() => runAction(message)}>
                {message.action.name}
              </button>
            )}
          </p>
        ))}
      </div>
    </Context>
  );
}

/**
 * Makes Z run the action of the newest message that has an action (R-SEEK-02). A separate component, so that the page's actions
 * take precedence.
 */
function UndoShortcut({ run }: { run: () => void }) {
  useActions([{ name: 'Undo', keys: ['z', 'mod+z'], run }]);
  return undefined;
}

export function useToast(): Toast {
  const toast = useContext(Context);
  if (!toast) throw new Error('useToast needs a ToastProvider.');
  return toast;
}
