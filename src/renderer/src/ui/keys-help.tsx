import type { Action } from './action.ts';
import { Dialog } from './dialog.tsx';
import { Kbd } from './kbd.tsx';

/** Keys that move and need no name in the palette. */
const MOVES = [
  { name: 'Move', keys: ['↑', '↓', 'J', 'K'] },
  { name: 'From the search into the list', keys: ['↓', 'Enter'] },
] as const;

/** Every key that does something at this moment. */
export function KeysHelp({ actions, close }: { actions: readonly Action[]; close: () => void }) {
  const keyed = [...MOVES, ...actions.filter(({ keys }) => keys !== undefined)];
  return (
    <Dialog title="Keys" close={close}>
      <dl className="keys">
        {keyed.map(({ name, keys = [] }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {keys.map((key) => (
                <Kbd key={key} spelled={key} />
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <p className="quiet">In the search, tag:name, client:name and category:name show only those.</p>
      <form method="dialog" className="buttons">
        <button className="button">Close</button>
      </form>
    </Dialog>
  );
}
