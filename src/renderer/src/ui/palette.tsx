import { type KeyboardEvent, useState } from 'react';
import { flushSync } from 'react-dom';
import type { Action } from './action.ts';
import { Dialog } from './dialog.tsx';
import { Kbd } from './kbd.tsx';

const idOf = (index: number): string => `action-${index}`;

/** Everything that can be done, by name; its keys stand beside it. */
export function Palette({ actions, close }: { actions: readonly Action[]; close: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const words = text.toLowerCase().split(/\s+/);
  const fitting = actions.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  const run = (action: Action | undefined): void => {
    if (!action) return;
    // First the dialog gives the focus back: what the action opens takes it.
    flushSync(close);
    action.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, fitting.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter') run(fitting[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Actions" close={close} className="palette" unseen>
      <input
        role="combobox"
        aria-label="Find an action"
        aria-expanded="true"
        aria-controls="actions"
        aria-activedescendant={fitting.length > 0 ? idOf(at) : undefined}
        autoComplete="off"
        placeholder="What shall be done?"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="actions" role="listbox" aria-label="Actions">
        {fitting.map((action, index) => (
          // Keys reach it through the combobox.
          <div
            key={action.name}
            id={idOf(index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            ref={index === at ? (option) => option?.scrollIntoView({ block: 'nearest' }) : undefined}
            onClick={() => run(action)}
            onKeyDown={() => undefined}
          >
            <span>{action.name}</span>
            {action.keys?.[0] !== undefined && <Kbd spelled={action.keys[0]} />}
          </div>
        ))}
      </div>
      <p className="said" role="status">
        {fitting.length === 0 ? 'Nothing is called so.' : ''}
      </p>
    </Dialog>
  );
}
