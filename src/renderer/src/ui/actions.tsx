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

interface OpenDialog {
  readonly kind: 'palette' | 'keys';
  /** The actions that were available when the dialog opened. */
  readonly actions: readonly Action[];
}

const Context = createContext<{ readonly registry: Registry; readonly open: (kind: OpenDialog['kind']) => void } | undefined>(
  undefined,
);

const PALETTE = 'All actions';

/** Handles keyboard shortcuts and opens the palette with all actions of the mounted components. */
export function ActionsProvider({ children }: { children: ReactNode }) {
  const [registry] = useState<Registry>(() => new Map([['', []]]));
  const [dialog, setDialog] = useState<OpenDialog>();
  const open = useCallback((kind: OpenDialog['kind']) => setDialog({ kind, actions: allActions(registry) }), [registry]);
  useEffect(() => {
    registry.set('', [
      { name: PALETTE, keys: ['mod+k'], whileTyping: true, run: () => open('palette') },
      { name: 'Keyboard shortcuts', keys: ['?'], run: () => open('keys') },
    ]);
    const onKeyDown = (event: KeyboardEvent): void => {
      // An open dialog or popover handles its own keys.
      if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open], [popover]:popover-open')) return;
      const action = actionFor(event, registry);
      if (!action) return;
      event.preventDefault();
      // Ignore repeated events of a held key, otherwise holding Backspace would forget one fact after another.
      if (!event.repeat) action.run();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [registry, open]);
  const context = useMemo(() => ({ registry, open }), [registry, open]);
  const close = (): void => setDialog(undefined);
  return (
    <Context value={context}>
      {children}
      {dialog?.kind === 'palette' && <Palette actions={dialog.actions.filter(({ name }) => name !== PALETTE)} close={close} />}
      {dialog?.kind === 'keys' && <KeysHelp actions={dialog.actions} close={close} />}
    </Context>
  );
}

/** Returns all registered actions: first the actions of the page, then of the sidebar, then the global actions. */
const allActions = (registry: Registry): Action[] => [...registry.values()].toReversed().flat();

/** Registers actions while the calling component is mounted. */
export function useActions(actions: readonly Action[]): void {
  const { registry } = useActionsContext();
  const id = useId();
  useLayoutEffect(() => void registry.set(id, actions), [registry, id, actions]);
  useLayoutEffect(() => () => void registry.delete(id), [registry, id]);
}

/** Returns a function that opens the palette. */
export const usePalette = (): (() => void) => {
  const { open } = useActionsContext();
  return () => open('palette');
};

function useActionsContext() {
  const context = useContext(Context);
  if (!context) throw new Error('useActions needs an ActionsProvider.');
  return context;
}

function actionFor(event: KeyboardEvent, registry: Registry): Action | undefined {
  const shortcut = shortcutOf(event);
  const { target } = event;
  const typing = target instanceof Element && target.matches('input, textarea, select');
  // Enter and Space press a focused button or link, so these keys are not shortcuts on such elements.
  const pressing =
    (shortcut === 'Enter' || shortcut === ' ') && target instanceof Element && target.matches('button, summary, a');
  // The arrow keys scroll a focused text that is too long for its place.
  const scrolling = /^Arrow(Up|Down)$/.test(shortcut) && target instanceof Element && target.matches('.value[tabindex]');
  if (pressing || scrolling) return undefined;
  return allActions(registry).find(
    ({ keys, whileTyping }) => keys?.includes(shortcut) && (!typing || (whileTyping && shortcut.startsWith('mod+'))),
  );
}

/** Spells the pressed keys as in `Action.keys`. Only named keys such as Enter get `shift+`; Shift makes a letter a capital. */
function shortcutOf({ key, code, metaKey, ctrlKey, altKey, shiftKey }: KeyboardEvent): string {
  const isNamed = key.length > 1;
  // On a Cyrillic, Greek or Hebrew keyboard, use the Latin letter at the same position.
  const latin = /^\P{ASCII}$/u.test(key) ? /^Key([A-Z])$/.exec(code)?.[1] : undefined;
  const typed = latin ?? key;
  // A capital without Shift comes from Caps Lock, which shortcuts ignore.
  const character = isNamed || shiftKey ? typed : typed.toLowerCase();
  return [metaKey || ctrlKey ? 'mod+' : '', altKey ? 'alt+' : '', isNamed && shiftKey ? 'shift+' : '', character].join('');
}
