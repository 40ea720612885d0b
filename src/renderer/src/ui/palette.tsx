import { type KeyboardEvent, useState } from 'react';
import { flushSync } from 'react-dom';
import type { Action } from './action.ts';
import { Dialog } from './dialog.tsx';
import { Kbd } from './kbd.tsx';

const idOf = (index: number): string => `action-${index}`;

export function Palette({ actions, close }: { actions: readonly Action[]; close: () => void }) {
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const words = text.toLowerCase().split(/\s+/);
  const matches = actions.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  const run = (action: Action | undefined): void => {
    if (!action) return;
    // Close the palette first, because closing restores the previous focus, and the action can set another focus.
    flushSync(close);
    action.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'ArrowDown') setSelected(Math.min(selected + 1, matches.length - 1));
    else if (event.key === 'ArrowUp') setSelected(Math.max(selected - 1, 0));
    else if (event.key === 'Enter') run(matches[selected]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Actions" close={close} className="palette" hideTitle>
      <input
        role="combobox"
        aria-label="Find an action"
        aria-expanded="true"
        aria-controls="actions"
        aria-activedescendant={matches.length > 0 ? idOf(selected) : undefined}
        autoComplete="off"
        placeholder="Type a command"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setSelected(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="actions" role="listbox" aria-label="Actions">
        {matches.map((action, index) => (
          // The combobox input handles the keys, so the key handler of an option is empty.
          <div
            key={action.name}
            id={idOf(index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === selected}
            ref={index === selected ? (option) => option?.scrollIntoView({ block: 'nearest' }) : undefined}
            onClick={() => run(action)}
            onKeyDown={() => undefined}
          >
            <span>{action.name}</span>
            {action.keys?.[0] !== undefined && <Kbd shortcut={action.keys[0]} />}
          </div>
        ))}
      </div>
      <p className="status" role="status">
        {matches.length === 0 ? 'No matching actions' : ''}
      </p>
    </Dialog>
  );
}
