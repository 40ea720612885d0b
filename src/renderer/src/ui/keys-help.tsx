import type { Action } from './action.ts';
import { CloseButton, Dialog } from './dialog.tsx';
import { Kbd } from './kbd.tsx';

/** Shortcuts that the palette does not list. */
const NAVIGATION = [
  { name: 'Move up and down', keys: ['↑', '↓', 'J', 'K'] },
  { name: 'Go from the search box to the list', keys: ['↓', 'Enter'] },
] as const;

export function KeysHelp({ actions, close }: { actions: readonly Action[]; close: () => void }) {
  const shortcuts = [...NAVIGATION, ...actions.filter(({ keys }) => keys !== undefined)];
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <dl className="keys">
        {shortcuts.map(({ name, keys = [] }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {keys.map((key) => (
                <Kbd key={key} shortcut={key} />
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <p className="quiet">In the search box, tag:name, client:name and category:name filter the list.</p>
      <CloseButton label="Close" />
    </Dialog>
  );
}
