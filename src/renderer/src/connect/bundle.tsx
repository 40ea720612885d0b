import { CLAUDE_BUNDLE } from '../../../contract/names.ts';
import { showBundle } from '../desktop-bridge.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';

/** Offers the bundle for Claude Desktop. The desktop app shows the bundle in the file manager; a browser downloads the bundle. */
export function Bundle() {
  const { bridge } = useMemory();
  const { busy, failure, run } = useTask();
  return (
    <details>
      <summary>Use the bundle instead</summary>
      <p className="quiet">
        Open <code>{CLAUDE_BUNDLE}</code> with Claude Desktop and install it with one click. Then come back here and connect. The
        configuration of Claude Desktop stays unchanged, and you don't need to install Node.
      </p>
      <ErrorText text={failure} />
      <p>
        {bridge.place === 'desktop' ? (
          <Button label="Show the bundle" disabled={busy} onClick={() => void run(() => showBundle(bridge))} />
        ) : (
          <a className="button" href={`/${CLAUDE_BUNDLE}`} download={CLAUDE_BUNDLE}>
            Download the bundle
          </a>
        )}
      </p>
    </details>
  );
}
