import { useAsked } from '../memory-context.tsx';
import { usePalette } from './actions.tsx';
import { Kbd } from './kbd.tsx';

interface Props {
  /** Whether there is something to copy or forget. */
  readonly chosen: boolean;
  readonly copy: () => void;
  readonly forget: () => void;
}

/** How the memory stands, and what the most used keys do. */
export function Footer({ chosen, copy, forget }: Props) {
  const { data } = useAsked('status', {});
  const openPalette = usePalette();
  return (
    <footer className="footer">
      <span>{data && `${count(data.facts)} · ${standing(data.store)}`}</span>
      <span className="hints">
        {chosen && (
          <>
            <button type="button" onClick={copy}>
              Copy <Kbd spelled="Enter" />
            </button>
            <button type="button" onClick={forget}>
              Forget <Kbd spelled="Backspace" />
            </button>
          </>
        )}
        <button type="button" onClick={openPalette}>
          More <Kbd spelled="mod+k" />
        </button>
      </span>
    </footer>
  );
}

const count = (facts: number): string => (facts === 1 ? '1 fact' : `${facts.toLocaleString()} facts`);

function standing({ kept, key }: { kept: string; key: { at: string } }): string {
  if (kept === 'memory') return 'kept nowhere: there is no key';
  return key.at === 'ok' ? 'sealed on this computer' : `sealed, and its key is ${key.at}`;
}
