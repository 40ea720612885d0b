import { type RefObject, useRef, useState } from 'react';
import type { ImportPreview } from '../../../contract/import-preview.ts';
import { TTL } from '../../../contract/limits.ts';
import { IMPORT_SOURCES } from '../../../contract/names.ts';
import { previewInParts } from '../../../contract/preview-in-parts.ts';
import { PRESETS } from '../facts/lifetime.ts';
import { useMemory } from '../memory-context.tsx';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Field, FileInput, TextField } from '../ui/field.tsx';
import { ImportChoice, SOURCE_NAMES } from './import-choice.tsx';

/** Maximum bytes of an imported file. The `import` command has the same limit. */
const MAX_BYTES = 16 * 1024 * 1024;

interface Props {
  readonly close: () => void;
  readonly importFacts: (facts: ImportPreview['facts']) => void;
}

/** A dialog that imports facts from another memory. The owner reviews the facts before anything is written. */
export function ImportDialog({ close, importFacts }: Props) {
  const form = useImportForm();
  const { preview, values, change } = form;
  const picker = useRef<HTMLInputElement>(null);
  if (preview) {
    return (
      <Dialog title="Choose facts to import" close={close} className="import wide">
        <ImportChoice preview={preview} back={form.clearPreview} importFacts={importFacts} />
      </Dialog>
    );
  }
  return (
    <Dialog title="Import from another memory" close={close} className="import wide">
      <form className="fields" onSubmit={form.loadPreview}>
        <Field label="Source">
          {(about) => (
            <select {...about} value={values.source} onChange={({ target }) => change({ source: target.value })}>
              <option value="">Detect from the text</option>
              {IMPORT_SOURCES.map((source) => (
                <option key={source} value={source}>
                  {SOURCE_NAMES[source]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextSource picker={picker} values={values} change={change} />
        <TextField
          label="Category for all facts"
          hint="Leave empty to use the category that each entry suggests."
          value={values.category}
          change={(category) => change({ category })}
        />
        <Field label="Lifetime of all facts">
          {(about) => (
            <select {...about} value={values.ttl} onChange={({ target }) => change({ ttl: Number(target.value) })}>
              {PRESETS.map(({ name, seconds }) => (
                <option key={name} value={seconds}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <ErrorText text={form.failure} />
        <DialogButtons close={close}>
          <Button label="Preview" type="submit" look="primary" disabled={form.busy || values.text.trim() === ''} />
        </DialogButtons>
      </form>
      <FileInput
        ref={picker}
        label="File from another memory"
        accept=".json,.jsonl,.md,.mdc,.markdown,.txt"
        onFile={form.readFile}
      />
    </Dialog>
  );
}

interface Values {
  readonly text: string;
  /** The name of the chosen file; undefined for pasted text. */
  readonly file: string | undefined;
  /** The chosen import source; empty to detect the source from the text. */
  readonly source: string;
  readonly category: string;
  readonly ttl: number;
}

function useImportForm() {
  const { call } = useMemory();
  const { busy, failure, run, submit } = useTask({ text: 'The text', category: 'Category for all facts' });
  const [values, setValues] = useState<Values>({ text: '', file: undefined, source: '', category: '', ttl: TTL.default });
  const [preview, setPreview] = useState<ImportPreview>();
  const change = (changed: Partial<Values>): void => setValues((before) => ({ ...before, ...changed }));
  return {
    values,
    change,
    busy,
    failure,
    preview,
    clearPreview: () => setPreview(undefined),
    readFile: (file: File): void =>
      void run(async () => {
        if (file.size > MAX_BYTES) throw new Error('The file is larger than 16 MiB. Split it and import the parts one by one.');
        change({ text: await file.text(), file: file.name });
      }),
    loadPreview: submit(async () => {
      const { text, file, source, category, ttl } = values;
      const from = IMPORT_SOURCES.find((known) => known === source);
      const input = {
        text,
        ttl_seconds: ttl,
        ...(file !== undefined && { name: file }),
        ...(from && { from }),
        ...(category.trim() !== '' && { category }),
      };
      setPreview(await previewInParts(call, input));
    }),
  };
}

interface TextSourceProps {
  readonly picker: RefObject<HTMLInputElement | null>;
  readonly values: Values;
  readonly change: (changed: Partial<Values>) => void;
}

function TextSource({ picker, values: { text, file }, change }: TextSourceProps) {
  return (
    <>
      <p className="from-file">
        <Button label="Choose a file…" onClick={() => picker.current?.click()} />
        {file !== undefined && (
          <>
            <bdi>{file}</bdi>
            <Button label="Paste text instead" look="link" onClick={() => change({ text: '', file: undefined })} />
          </>
        )}
      </p>
      {file === undefined && (
        <Field label="Or paste text" hint="Copy the whole memory page, with one entry per line.">
          {(about) => <textarea {...about} rows={6} value={text} onChange={({ target }) => change({ text: target.value })} />}
        </Field>
      )}
    </>
  );
}
