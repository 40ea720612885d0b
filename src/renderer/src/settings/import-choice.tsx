import { useState } from 'react';
import type { ImportPreview, ImportSource } from '../../../contract/import-preview.ts';
import { PRESETS } from '../facts/lifetime.ts';
import { counted } from '../time.ts';
import { Button } from '../ui/button.tsx';

export const SOURCE_NAMES: Readonly<Record<ImportSource, string>> = {
  'mcp-memory': 'MCP memory server (memory.json)',
  markdown: 'CLAUDE.md, AGENTS.md, GEMINI.md or other Markdown',
  'basic-memory': 'basic-memory note',
  chatgpt: 'ChatGPT memory page',
  claude: 'Claude memory page',
};

/** Number of rows shown at first. "Show more" adds the same number. */
const ROWS = 100;

interface Props {
  readonly preview: ImportPreview;
  readonly back: () => void;
  readonly importFacts: (facts: ImportPreview['facts']) => void;
}

export function ImportChoice({ preview, back, importFacts }: Props) {
  const { from, facts, left_out: skipped } = preview;
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState(ROWS);
  const included = facts.filter(({ key }) => !excluded.has(key));
  const lifetime = PRESETS.find(({ seconds }) => seconds === facts[0]?.ttl_seconds)?.name;
  const toggle = (key: string, include: boolean): void => {
    const others = [...excluded].filter((other) => other !== key);
    setExcluded(new Set(include ? others : [...others, key]));
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        importFacts(included);
      }}
    >
      <p role="status">
        {counted(facts.length, 'fact')} from {SOURCE_NAMES[from]}, {skipped.length.toLocaleString()} skipped.
        {lifetime !== undefined && ` Lifetime: ${lifetime}.`}
      </p>
      {facts.length > 0 && (
        <label className="import-row">
          <input
            type="checkbox"
            checked={included.length === facts.length}
            onChange={({ target }) => setExcluded(new Set(target.checked ? [] : facts.map(({ key }) => key)))}
          />
          All facts
        </label>
      )}
      <ul className="plain choice" aria-label="Facts to import">
        {facts.slice(0, shown).map(({ key, value, category, tags, note }) => (
          <li key={key}>
            <label className="import-row">
              <input type="checkbox" checked={!excluded.has(key)} onChange={({ target }) => toggle(key, target.checked)} />
              <span>
                <bdi className="import-value">{value}</bdi>
                <span className="quiet small">
                  <bdi>{key}</bdi> · <bdi>{[category, ...tags].join(', ')}</bdi>
                </span>
                {note !== undefined && <span className="warned small">{note}</span>}
              </span>
            </label>
          </li>
        ))}
      </ul>
      <ShowMore shown={shown} of={facts.length} setShown={setShown} />
      {skipped.length > 0 && <Skipped entries={skipped} />}
      <p className="buttons">
        <Button label="Back" onClick={back} />
        <Button
          label={`Import ${counted(included.length, 'fact')}`}
          type="submit"
          look="primary"
          disabled={included.length === 0}
        />
      </p>
    </form>
  );
}

/** Lists the skipped entries. Initially expanded if an entry contains a secret or is invalid. */
function Skipped({ entries }: { entries: ImportPreview['left_out'] }) {
  const [shown, setShown] = useState(ROWS);
  const isProblem = ({ why }: ImportPreview['left_out'][number]): boolean => why === 'secret' || why === 'invalid';
  return (
    <details open={entries.some(isProblem)}>
      <summary>Skipped: {counted(entries.length, 'entry')}</summary>
      <ul className="plain" aria-label="Skipped">
        {entries.slice(0, shown).map((entry, index) => (
          // The React key needs the index, because several entries can come from one line.
          <li key={`${entry.line} ${index}`} className={isProblem(entry) ? 'warned' : 'quiet'}>
            Line {entry.line}: <bdi>{entry.message}</bdi> {entry.text !== undefined && <bdi>({entry.text})</bdi>}
          </li>
        ))}
      </ul>
      <ShowMore shown={shown} of={entries.length} setShown={setShown} />
    </details>
  );
}

function ShowMore({ shown, of, setShown }: { shown: number; of: number; setShown: (shown: number) => void }) {
  if (shown >= of) return undefined;
  return <Button label={`Show more of ${of.toLocaleString()}`} look="link" onClick={() => setShown(shown + ROWS)} />;
}
