import { useRef, useState } from 'react';
import type { PreviewedFact } from '../../../contract/import-preview.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { counted } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { FileInput } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { ImportDialog } from './import-dialog.tsx';
import { exportAll, importAll, type ImportReport } from './transfer-files.ts';
import { UndoImport } from './undo-import.tsx';

const MAX_ERRORS = 50;

/** Exports facts to a file and imports facts from a file, in the same format as the command line. */
export function TransferSection() {
  const transfer = useTransfer();
  const { busy, chosen, report } = transfer;
  const [dialog, setDialog] = useState<'import' | 'undo'>();
  const close = (): void => setDialog(undefined);
  const picker = useRef<HTMLInputElement>(null);
  const pick = (): void => picker.current?.click();
  useActions([
    { name: 'Export facts to a file', run: transfer.save },
    { name: 'Import facts from a file…', run: pick },
    { name: 'Import facts from another memory…', run: () => setDialog('import') },
  ]);
  return (
    <Section title="Import and export">
      <p className="quiet">
        An export contains every fact of this memory, unencrypted, one per line. Imports show a preview first. You can also import
        from memory.json of the MCP memory server, CLAUDE.md and similar files, basic-memory notes, and text copied from ChatGPT
        or Claude.
      </p>
      <p className="buttons">
        <Button label="Export…" disabled={busy} onClick={transfer.save} />
        <Button label="Import…" disabled={busy} onClick={pick} />
        <Button label="Import from another memory…" disabled={busy} onClick={() => setDialog('import')} />
        <FileInput
          ref={picker}
          label="File to import"
          accept=".jsonl,.ndjson,.json,application/x-ndjson"
          onFile={transfer.previewFile}
        />
      </p>
      {transfer.progress && <ProgressBar progress={transfer.progress} stop={transfer.stop} />}
      <ErrorText text={transfer.failure} />
      {chosen && <FilePreview chosen={chosen} cancel={transfer.cancel} importLines={() => transfer.importLines(chosen.lines)} />}
      {report && (
        <div>
          <p role="status">Imported: {summary(report)}</p>
          <Errors errors={report.errors} />
          {report.written && (
            <p className="buttons">
              <Button label="Undo the import…" disabled={busy} onClick={() => setDialog('undo')} />
            </p>
          )}
        </div>
      )}
      {dialog === 'import' && (
        <ImportDialog
          close={close}
          importFacts={(facts) => {
            close();
            transfer.importFacts(facts);
          }}
        />
      )}
      {dialog === 'undo' && report?.written && (
        <UndoImport written={report.written} close={close} onUndone={transfer.clearReport} />
      )}
    </Section>
  );
}

interface Progress {
  readonly title: 'Exporting' | 'Checking' | 'Importing';
  readonly done: number;
  readonly of: number;
}

interface ChosenFile {
  readonly name: string;
  readonly lines: readonly string[];
  /** The result of a dry run of the import. */
  readonly preview: ImportReport;
}

function useTransfer() {
  const { call, subject } = useMemory();
  const { showToast } = useToast();
  const { data: status } = useOperation('status', {});
  const { busy, failure, run } = useTask();
  const [progress, setProgress] = useState<Progress>();
  const [chosen, setChosen] = useState<ChosenFile>();
  const [report, setReport] = useState<ImportReport>();
  const controller = useRef(new AbortController());

  const withProgress = async <T,>(
    title: Progress['title'],
    of: number,
    work: (onProgress: (done: number) => void, signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    controller.current = new AbortController();
    setProgress({ title, done: 0, of });
    try {
      return await work((done) => setProgress({ title, done, of }), controller.current.signal);
    } finally {
      setProgress(undefined);
    }
  };
  const reset = (): void => {
    setChosen(undefined);
    setReport(undefined);
  };
  const importLines = (lines: readonly string[], toReport = (result: ImportReport): ImportReport => result): void =>
    void run(async () => {
      reset();
      const result = await withProgress('Importing', lines.length, (onProgress, signal) =>
        importAll(call, lines, { dry: false, onProgress, signal }),
      );
      setReport(toReport(result));
    });
  return {
    busy,
    failure,
    progress,
    chosen,
    report,
    stop: () => controller.current.abort(),
    cancel: () => setChosen(undefined),
    clearReport: () => setReport(undefined),
    importLines,
    importFacts: (facts: readonly PreviewedFact[]): void => {
      const lines = facts.map(({ line: _line, note: _note, ...fact }) => JSON.stringify(fact));
      // Report line numbers of the owner's file, not of the lines generated here.
      const lineOf = (line: number): number => facts[line - 1]?.line ?? line;
      importLines(lines, (result) => ({
        ...result,
        errors: result.errors.map((error) => ({ ...error, line: lineOf(error.line) })),
      }));
    },
    previewFile: (file: File): void =>
      void run(async () => {
        reset();
        const lines = (await file.text()).split('\n');
        const preview = await withProgress('Checking', lines.length, (onProgress, signal) =>
          importAll(call, lines, { dry: true, onProgress, signal }),
        );
        setChosen({ name: file.name, lines, preview });
      }),
    save: (): void =>
      void run(async () => {
        const file = await withProgress('Exporting', status?.facts ?? 0, (onProgress) => exportAll(call, onProgress));
        download(`helmdeck-memory-${subject.replaceAll(/[^\w.-]/g, '_')}.jsonl`, file);
        showToast({ text: 'The exported file is not encrypted. Keep it where only you can read it.' });
      }),
  };
}

function ProgressBar({ progress: { title, done, of }, stop }: { progress: Progress; stop: () => void }) {
  return (
    <div>
      <p role="status">{title}…</p>
      <progress aria-label={title} max={Math.max(1, of)} value={done} />
      {title !== 'Exporting' && <Button label="Stop" onClick={stop} />}
    </div>
  );
}

interface FilePreviewProps {
  readonly chosen: ChosenFile;
  readonly cancel: () => void;
  readonly importLines: () => void;
}

/** Shows what an import would change, before anything is written (R-WIN-25). */
function FilePreview({ chosen: { name, preview }, cancel, importLines }: FilePreviewProps) {
  const facts = preview.created + preview.updated + preview.unchanged;
  return (
    <div role="group" aria-label={`Import ${name}`}>
      <p role="status">
        <bdi>{name}</bdi>: {summary(preview)}
      </p>
      <Errors errors={preview.errors} />
      <p className="buttons">
        <Button label="Cancel" onClick={cancel} />
        <Button label={`Import ${counted(facts, 'fact')}`} look="primary" disabled={facts === 0} onClick={importLines} />
      </p>
    </div>
  );
}

function summary({ created, updated, unchanged, dropped, errors }: ImportReport): string {
  const parts = [
    `${created.toLocaleString()} new`,
    `${updated.toLocaleString()} changed`,
    `${unchanged.toLocaleString()} unchanged`,
    ...(dropped > 0 ? [`${dropped.toLocaleString()} skipped because they expire within an hour`] : []),
    ...(errors.length > 0 ? [`${counted(errors.length, 'line')} rejected`] : []),
  ];
  return `${parts.join(', ')}.`;
}

function Errors({ errors }: { errors: ImportReport['errors'] }) {
  if (errors.length === 0) return undefined;
  return (
    <ul className="plain" aria-label="Rejected lines">
      {errors.slice(0, MAX_ERRORS).map(({ line, message }, index) => (
        <li key={`${line} ${index}`} className="warned">
          Line {line}: {message}
        </li>
      ))}
      {errors.length > MAX_ERRORS && <li className="quiet">and {(errors.length - MAX_ERRORS).toLocaleString()} more</li>}
    </ul>
  );
}

function download(name: string, file: Blob): void {
  const link = document.createElement('a');
  const url = URL.createObjectURL(file);
  link.download = name;
  link.href = url;
  link.click();
  // The browser needs the URL until the download has started.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
