import { CLAUDE_BUNDLE } from '../../../contract/limits.ts';
import { showBundle } from '../desktop-bridge.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Failed } from '../ui/refused.tsx';

/** What Claude Desktop installs with one click: shown where it lies, or in a browser downloaded. */
export function Bundle() {
  const { bridge } = useMemory();
  const { busy, failure, run } = useDoing();
  return (
    <details>
      <summary>By a bundle instead</summary>
      <p className="quiet">
        Open <code>{CLAUDE_BUNDLE}</code> with Claude Desktop, which installs it with one click, and come back to connect: then
        nothing changes in its configuration, and it needs no Node but its own.
      </p>
      <Failed text={failure} />
      <p>
        {bridge.place === 'desktop' ? (
          <button type="button" className="button" disabled={busy} onClick={() => void run(() => showBundle(bridge))}>
            Show the bundle
          </button>
        ) : (
          <a className="button" href={`/${CLAUDE_BUNDLE}`} download={CLAUDE_BUNDLE}>
            Download the bundle
          </a>
        )}
      </p>
    </details>
  );
}
