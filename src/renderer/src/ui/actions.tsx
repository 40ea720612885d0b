import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useState,
} from 'react';
import type { Action } from './action.ts';
import { KeysHelp } from './keys-help.tsx';
import { Palette } from './palette.tsx';

type Registry = Map<string, readonly Action[]>;

interface Shown {
  readonly what: 'palette' | 'keys';
  /** What could be done when it was opened. */
  readonly actions: readonly Action[];
}

const Context = createContext<{ readonly registry: Registry; readonly open: (what: Shown['what']) => void } | undefined>(
  undefined,
);

const PALETTE = 'All actions';

/** Hears every key, and opens the palette of all that can be done at this moment. */
export function ActionsProvider({ children }: { children: ReactNode }) {
  const [registry] = useState<Registry>(() => new Map([['', []]]));
  const [shown, setShown] = useState<Shown>();
  const open = useCallback((what: Shown['what']) => setShown({ what, actions: all(registry) }), [registry]);
  useEffect(() => {
    registry.set('', [
      { name: PALETTE, keys: ['mod+k'], whileTyping: true, run: () => open('palette') },
      { name: 'Keys', keys: ['?'], run: () => open('keys') },
    ]);
    const hear = (event: KeyboardEvent): void => {
      // What lies above the page hears its own keys.
      if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open], [popover]:popover-open')) return;
      const action = actionFor(event, registry);
      if (!action) return;
      event.preventDefault();
      // A key that is held down would forget one fact after the other.
      if (!event.repeat) action.run();
    };
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  }, [registry, open]);
  const context = useMemo(() => ({ registry, open }), [registry, open]);
  const close = (): void => setShown(undefined);
  return (
    <Context value={context}>
      {children}
      {shown?.what === 'palette' && <Palette actions={shown.actions.filter(({ name }) => name !== PALETTE)} close={close} />}
      {shown?.what === 'keys' && <KeysHelp actions={shown.actions} close={close} />}
    </Context>
  );
}

/** What came last is nearest: the page's before the sidebar's, and those of every page last. */
const all = (registry: Registry): Action[] => [...registry.values()].toReversed().flat();

/** What can be done while this component is shown. */
export function useActions(actions: readonly Action[]): void {
  const { registry } = useShared();
  const id = useId();
  useLayoutEffect(() => void registry.set(id, actions), [registry, id, actions]);
  useLayoutEffect(() => () => void registry.delete(id), [registry, id]);
}

/** For a button that opens the palette. */
export const usePalette = (): (() => void) => {
  const { open } = useShared();
  return () => open('palette');
};

function useShared() {
  const shared = useContext(Context);
  if (!shared) throw new Error('Nothing can be done here.');
  return shared;
}

function actionFor(event: KeyboardEvent, registry: Registry): Action | undefined {
  const spelled = spell(event);
  const { target } = event;
  const typing = target instanceof Element && target.matches('input, textarea, select');
  // A button that has the focus is what these two press.
  const pressing = (spelled === 'Enter' || spelled === ' ') && target instanceof Element && target.matches('button, summary, a');
  if (pressing) return undefined;
  return all(registry).find(
    ({ keys, whileTyping }) => keys?.includes(spelled) && (!typing || (whileTyping && spelled.startsWith('mod+'))),
  );
}

/** `mod` is the key that the system uses for commands. Shift shows in a letter's own sign. */
function spell({ key, code, metaKey, ctrlKey, altKey, shiftKey }: KeyboardEvent): string {
  const named = key.length > 1;
  // Where the keys write Cyrillic, Greek or Hebrew, the one in the place of a Latin letter stands for it.
  const latin = /^\P{ASCII}$/u.test(key) ? /^Key([A-Z])$/.exec(code)?.[1] : undefined;
  const typed = latin ?? key;
  // Without Shift a capital comes of Caps Lock.
  const sign = named || shiftKey ? typed : typed.toLowerCase();
  return [metaKey || ctrlKey ? 'mod+' : '', altKey ? 'alt+' : '', named && shiftKey ? 'shift+' : '', sign].join('');
}
