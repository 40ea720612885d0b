import { type FormEvent, useRef, useState } from 'react';
import type { ImportPreview, ImportSource } from '../../../contract/import-preview.ts';
import { IMPORT_SOURCES, TTL } from '../../../contract/limits.ts';
import { previewInParts } from '../../../contract/preview-in-parts.ts';
import { useDoing } from '../doing.ts';
import { PRESETS } from '../facts/lifetime.ts';
import { useMemory } from '../memory-context.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Labelled } from '../ui/labelled.tsx';
import { Failed } from '../ui/refused.tsx';
import { TextField } from '../ui/text-field.tsx';
import './bring.css';

const NAMES: Readonly<Record<ImportSource, string>> = {
  'mcp-memory': 'MCP memory server (memory.json)',
  markdown: 'CLAUDE.md, AGENTS.md, GEMINI.md or other Markdown',
  'basic-memory': 'basic-memory note',
  chatgpt: 'ChatGPT memory page',
  claude: 'Claude memory page',
};

/** Rows that are there at first; more come as they are asked for. */
const ROWS = 100;
/** As on the command line. */
const MOST_BYTES = 16 * 1024 * 1024;

interface Props {
  readonly close: () => void;
  readonly take: (facts: ImportPreview['facts']) => void;
}

/** What another memory holds, looked at fact by fact before any of it is written. */
export function Bring({ close, take }: Props) {
  const { ask } = useMemory();
  const { busy, failure, run } = useDoing({ text: 'The text', category: 'Category of all' });
  const [text, setText] = useState('');
  const [file, setFile] = useState<string>();
  const [from, setFrom] = useState('');
  const [category, setCategory] = useState('');
  const [ttl, setTtl] = useState<number>(TTL.default);
  const [preview, setPreview] = useState<ImportPreview>();
  const picker = useRef<HTMLInputElement>(null);
  const choose = (chosen: File): void =>
    void run(async () => {
      if (chosen.size > MOST_BYTES)
        throw new Error('It is larger than 16 MiB; split it, and bring the parts one after the other.');
      setText(await chosen.text());
      setFile(chosen.name);
    });
  const look = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const source = IMPORT_SOURCES.find((known) => known === from);
      setPreview(
        await previewInParts(ask, {
          text,
          ttl_seconds: ttl,
          ...(file !== undefined && { name: file }),
          ...(source && { from: source }),
          ...(category.trim() !== '' && { category }),
        }),
      );
    });
  };
  if (preview) {
    return (
      <Dialog title="What would be brought" close={close} className="bring wide">
        <Choice preview={preview} back={() => setPreview(undefined)} take={take} />
      </Dialog>
    );
  }
  return (
    <Dialog title="Bring from another memory" close={close} className="bring wide">
      <form className="fields" onSubmit={look}>
        <Labelled label="From">
          {(about) => (
            <select {...about} value={from} onChange={({ target }) => setFrom(target.value)}>
              <option value="">Tell from the text</option>
              {IMPORT_SOURCES.map((source) => (
                <option key={source} value={source}>
                  {NAMES[source]}
                </option>
              ))}
            </select>
          )}
        </Labelled>
        <p className="from-file">
          <button type="button" className="button" onClick={() => picker.current?.click()}>
            Choose a file…
          </button>
          {file !== undefined && (
            <>
              <bdi>{file}</bdi>
              <button
                type="button"
                className="opener"
                onClick={() => {
                  setText('');
                  setFile(undefined);
                }}
              >
                Paste text instead
              </button>
            </>
          )}
        </p>
        {file === undefined && (
          <Labelled label="Or paste it here" hint="A memory page as it is copied, an entry on each line.">
            {(about) => <textarea {...about} rows={6} value={text} onChange={({ target }) => setText(target.value)} />}
          </Labelled>
        )}
        <TextField
          label="Category of all"
          hint="Left empty, each fact gets the one that its entry suggests."
          value={category}
          change={setCategory}
        />
        <Labelled label="Lifetime of all">
          {(about) => (
            <select {...about} value={ttl} onChange={({ target }) => setTtl(Number(target.value))}>
              {PRESETS.map(({ name, seconds }) => (
                <option key={name} value={seconds}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Labelled>
        <Failed text={failure} />
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className="button primary" disabled={busy || text.trim() === ''}>
            Look at it
          </button>
        </p>
      </form>
      <input
        ref={picker}
        type="file"
        hidden
        aria-label="File of another memory"
        accept=".json,.jsonl,.md,.mdc,.markdown,.txt"
        onChange={({ target }) => {
          const [chosen] = target.files ?? [];
          target.value = '';
          if (chosen) choose(chosen);
        }}
      />
    </Dialog>
  );
}

function Choice({ preview, back, take }: { preview: ImportPreview; back: () => void; take: Props['take'] }) {
  const { from, facts, left_out: left } = preview;
  const [not, setNot] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState(ROWS);
  const chosen = facts.filter(({ key }) => !not.has(key));
  const choose = (keys: readonly string[], wanted: boolean): void => {
    const next = new Set(not);
    for (const key of keys) {
      if (wanted) next.delete(key);
      else next.add(key);
    }
    setNot(next);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        take(chosen);
      }}
    >
      <p role="status">
        {counted(facts.length, 'fact')} from {NAMES[from]}, {left.length.toLocaleString()} left out.
        {facts[0] && ` Each lives for ${PRESETS.find(({ seconds }) => seconds === facts[0]?.ttl_seconds)?.name}.`}
      </p>
      {facts.length > 0 && (
        <label className="brought">
          <input
            type="checkbox"
            checked={chosen.length === facts.length}
            onChange={({ target }) =>
              choose(
                facts.map(({ key }) => key),
                target.checked,
              )
            }
          />
          All of them
        </label>
      )}
      <ul className="plain choice" aria-label="Facts to bring">
        {facts.slice(0, shown).map(({ key, value, category, tags, note }) => (
          <li key={key}>
            <label className="brought">
              <input type="checkbox" checked={!not.has(key)} onChange={({ target }) => choose([key], target.checked)} />
              <span>
                <bdi className="said">{value}</bdi>
                <span className="quiet small">
                  <bdi>{key}</bdi> · <bdi>{[category, ...tags].join(', ')}</bdi>
                </span>
                {note !== undefined && <span className="warned small">{note}</span>}
              </span>
            </label>
          </li>
        ))}
      </ul>
      {facts.length > shown && (
        <button type="button" className="opener" onClick={() => setShown(shown + ROWS)}>
          Show more of {facts.length.toLocaleString()}
        </button>
      )}
      {left.length > 0 && <LeftOut left={left} />}
      <p className="buttons">
        <button type="button" className="button" onClick={back}>
          Back
        </button>
        <button className="button primary" disabled={chosen.length === 0}>
          Import {counted(chosen.length, 'fact')}
        </button>
      </p>
    </form>
  );
}

function LeftOut({ left }: { left: ImportPreview['left_out'] }) {
  const [shown, setShown] = useState(ROWS);
  return (
    <details open={left.some(({ why }) => why === 'secret' || why === 'invalid')}>
      <summary>Left out: {counted(left.length, 'entry')}</summary>
      <ul className="plain" aria-label="Left out">
        {left.slice(0, shown).map(({ line, text, why, message }, index) => (
          // Several may stand on one line, and say the same.
          <li key={`${line} ${index}`} className={why === 'secret' || why === 'invalid' ? 'warned' : 'quiet'}>
            Line {line}: <bdi>{message}</bdi> {text !== undefined && <bdi>({text})</bdi>}
          </li>
        ))}
      </ul>
      {left.length > shown && (
        <button type="button" className="opener" onClick={() => setShown(shown + ROWS)}>
          Show more of {left.length.toLocaleString()}
        </button>
      )}
    </details>
  );
}
