import { callDesktop } from '../desktop-bridge.ts';
import { useDesktopState } from '../desktop-state.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { ErrorText } from '../ui/errors.tsx';
import { Section } from '../ui/page.tsx';

/** Lets the owner start the desktop app at login. Not shown if the system does not support starting programs at login. */
export function AtLoginSection() {
  const { bridge } = useMemory();
  const { busy, failure, run } = useTask();
  const [state, setState] = useDesktopState('atLogin', 'login');
  if (state?.starts === undefined) return undefined;
  const change = (choice: { starts?: boolean; hidden?: boolean }): void =>
    void run(async () => setState(await callDesktop(bridge, 'chooseAtLogin', choice)));
  return (
    <Section title="At login">
      <label className="check">
        <input
          type="checkbox"
          checked={state.starts}
          disabled={busy}
          onChange={({ target }) => change({ starts: target.checked })}
        />
        Start Helmdeck Memory
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={state.hidden}
          disabled={busy}
          onChange={({ target }) => change({ hidden: target.checked })}
        />
        Start in the tray, without a window
      </label>
      <ErrorText text={failure} />
    </Section>
  );
}
