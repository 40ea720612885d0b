import { useRef, useState } from 'react';
import type { PreviewedFact } from '../../../contract/import-preview.ts';
import { useDoing } from '../doing.ts';
import { useAsked, useMemory } from '../memory-context.tsx';
import { useActions } from '../ui/actions.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { Bring } from './bring.tsx';
import { TakeBack } from './take-back.tsx';
import { exportAll, importAll, type Report } from './transfer.ts';

const SHOWN = 50;

interface Progress {
  readonly what: string;
  readonly done: number;
  readonly of: number;
}

interface Chosen {
  readonly name: string;
  readonly lines: readonly string[];
  /** What would become of it, until it is imported. */
  readonly would: Report;
}

/** Facts to a file and from a file: the same lines as on the command line. */
export function TransferSection() {
  const { ask, subject } = useMemory();
  const { say } = useToast();
  const { data: status } = useAsked('status', {});
  const { busy, failure, run } = useDoing();
  const [progress, setProgress] = useState<Progress>();
  const [chosen, setChosen] = useState<Chosen>();
  const [done, setDone] = useState<Report>();
  const [dialog, setDialog] = useState<'bring' | 'take back'>();
  const picker = useRef<HTMLInputElement>(null);
  const stop = useRef(new AbortController());
  const whileShown = async <T,>(what: string, of: number, work: (told: (count: number) => void) => Promise<T>): Promise<T> => {
    stop.current = new AbortController();
    setProgress({ what, done: 0, of });
    try {
      return await work((count) => setProgress({ what, done: count, of }));
    } finally {
      setProgress(undefined);
    }
  };
  const save = (): void =>
    void run(async () => {
      const file = await whileShown('Exporting', status?.facts ?? 0, (told) => exportAll(ask, told));
      download(`helmdeck-memory-${subject.replaceAll(/[^\w.-]/g, '_')}.jsonl`, file);
      say({ text: 'The file with the facts is not sealed: keep it where nobody else can read it.' });
    });
  const choose = (file: File): void =>
    void run(async () => {
      setChosen(undefined);
      setDone(undefined);
      const lines = (await file.text()).split('\n');
      const { signal } = stop.current;
      const would = await whileShown('Checking', lines.length, (told) => importAll(ask, lines, { dry: true, told, signal }));
      setChosen({ name: file.name, lines, would });
    });
  const take = (lines: readonly string[], told: (report: Report) => Report = (report) => report): void =>
    void run(async () => {
      setChosen(undefined);
      setDone(undefined);
      const report = await whileShown('Importing', lines.length, (count) =>
        importAll(ask, lines, { dry: false, told: count, signal: stop.current.signal }),
      );
      setDone(told(report));
    });
  const bring = (facts: readonly PreviewedFact[]): void => {
    setDialog(undefined);
    const lines = facts.map(({ line: _line, note: _note, ...fact }) => JSON.stringify(fact));
    // The lines that were read, not those that we made.
    const lineOf = (made: number): number => facts[made - 1]?.line ?? made;
    take(lines, (report) => ({ ...report, errors: report.errors.map((error) => ({ ...error, line: lineOf(error.line) })) }));
  };
  const pick = (): void => picker.current?.click();
  useActions([
    { name: 'Export facts to a file', run: save },
    { name: 'Import facts from a file…', run: pick },
    { name: 'Bring facts from another memory…', run: () => setDialog('bring') },
  ]);
  return (
    <Section title="Facts in a file">
      <p className="quiet">
        An export holds every fact of this memory in clear, a line each. An import is looked at before anything is written, and so
        is what another memory holds: memory.json of the MCP memory server, CLAUDE.md and its like, notes of basic-memory, and
        pages that you copied from ChatGPT or Claude.
      </p>
      <p className="buttons">
        <button type="button" className="button" disabled={busy} onClick={save}>
          Export…
        </button>
        <button type="button" className="button" disabled={busy} onClick={pick}>
          Import…
        </button>
        <button type="button" className="button" disabled={busy} onClick={() => setDialog('bring')}>
          Bring from another memory…
        </button>
        <input
          ref={picker}
          type="file"
          hidden
          aria-label="File to import"
          accept=".jsonl,.ndjson,.json,application/x-ndjson"
          onChange={({ target }) => {
            const [file] = target.files ?? [];
            // The same file may be chosen again after it was mended.
            target.value = '';
            if (file) choose(file);
          }}
        />
      </p>
      {progress && (
        <div>
          <p role="status">{progress.what}…</p>
          <progress aria-label={progress.what} max={Math.max(1, progress.of)} value={progress.done} />
          {progress.what !== 'Exporting' && (
            <button type="button" className="button" onClick={() => stop.current.abort()}>
              Stop
            </button>
          )}
        </div>
      )}
      <Failed text={failure} />
      {chosen && (
        <div role="group" aria-label={`Import ${chosen.name}`}>
          <p role="status">
            <bdi>{chosen.name}</bdi> would bring {summary(chosen.would)}
          </p>
          <Errors errors={chosen.would.errors} />
          <p className="buttons">
            <button type="button" className="button" onClick={() => setChosen(undefined)}>
              Cancel
            </button>
            <button
              type="button"
              className="button primary"
              disabled={changes(chosen.would) === 0}
              onClick={() => take(chosen.lines)}
            >
              Import {counted(changes(chosen.would), 'fact')}
            </button>
          </p>
        </div>
      )}
      {done && (
        <div>
          <p role="status">Imported: {summary(done)}</p>
          <Errors errors={done.errors} />
          {done.written && (
            <p className="buttons">
              <button type="button" className="button" disabled={busy} onClick={() => setDialog('take back')}>
                Take it all back…
              </button>
            </p>
          )}
        </div>
      )}
      {dialog === 'bring' && <Bring close={() => setDialog(undefined)} take={bring} />}
      {dialog === 'take back' && done?.written && (
        <TakeBack written={done.written} close={() => setDialog(undefined)} done={() => setDone(undefined)} />
      )}
    </Section>
  );
}

const changes = ({ created, updated, unchanged }: Report): number => created + updated + unchanged;

function summary({ created, updated, unchanged, dropped, errors }: Report): string {
  const parts = [
    `${created.toLocaleString()} new`,
    `${updated.toLocaleString()} changed`,
    `${unchanged.toLocaleString()} known already`,
    ...(dropped > 0 ? [`${dropped.toLocaleString()} dropped with less than an hour left`] : []),
    ...(errors.length > 0 ? [`${counted(errors.length, 'line')} refused`] : []),
  ];
  return `${parts.join(', ')}.`;
}

function Errors({ errors }: { errors: Report['errors'] }) {
  if (errors.length === 0) return undefined;
  return (
    <ul className="plain" aria-label="Refused lines">
      {errors.slice(0, SHOWN).map(({ line, message }, index) => (
        <li key={`${line} ${index}`} className="warned">
          Line {line}: {message}
        </li>
      ))}
      {errors.length > SHOWN && <li className="quiet">and {(errors.length - SHOWN).toLocaleString()} more</li>}
    </ul>
  );
}

function download(name: string, file: Blob): void {
  const link = document.createElement('a');
  const url = URL.createObjectURL(file);
  link.download = name;
  link.href = url;
  link.click();
  // The browser has taken it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
