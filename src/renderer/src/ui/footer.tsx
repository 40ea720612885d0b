import { useOperation } from '../memory-context.tsx';
import { counted } from '../time.ts';
import { usePalette } from './actions.tsx';
import { Kbd } from './kbd.tsx';

interface Props {
  readonly hasSelection: boolean;
  readonly copy: () => void;
  readonly forget: () => void;
}

export function Footer({ hasSelection, copy, forget }: Props) {
  const { data } = useOperation('status', {});
  const openPalette = usePalette();
  return (
    <footer className="footer">
      <span>{data && `${counted(data.facts, 'fact')} · ${KEY_STATES[data.store.key.at]}`}</span>
      <span className="hints">
        {hasSelection && (
          <>
            <button type="button" onClick={copy}>
              Copy <Kbd shortcut="Enter" />
            </button>
            <button type="button" onClick={forget}>
              Forget <Kbd shortcut="Backspace" />
            </button>
          </>
        )}
        <button type="button" onClick={openPalette}>
          More <Kbd shortcut="mod+k" />
        </button>
      </span>
    </footer>
  );
}

const KEY_STATES = {
  ok: 'sealed on this computer',
  ephemeral: 'not saved: no key',
  locked: 'locked',
  absent: 'sealed, key missing',
  mismatch: 'sealed with another key',
  unavailable: 'sealed, key unavailable',
} as const;
