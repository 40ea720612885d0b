import { askDesktop } from '../desktop-bridge.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/refused.tsx';
import { useDesktop } from '../use-desktop.ts';

/** Whether the desktop starts with its owner's session: as in its menu. Nothing is shown where the system cannot start it. */
export function AtLoginSection() {
  const { bridge } = useMemory();
  const { busy, failure, run } = useDoing();
  const [known, setKnown] = useDesktop('atLogin', 'login');
  if (known?.starts === undefined) return undefined;
  const choose = (choice: { starts?: boolean; hidden?: boolean }): void =>
    void run(async () => setKnown(await askDesktop(bridge, 'chooseAtLogin', choice)));
  return (
    <Section title="When you log in">
      <label className="check">
        <input
          type="checkbox"
          checked={known.starts}
          disabled={busy}
          onChange={({ target }) => choose({ starts: target.checked })}
        />
        Start Helmdeck Memory
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={known.hidden}
          disabled={busy}
          onChange={({ target }) => choose({ hidden: target.checked })}
        />
        Stay in the tray then, without a window
      </label>
      <Failed text={failure} />
    </Section>
  );
}
