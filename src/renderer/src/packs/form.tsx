import { type FormEvent, useState } from 'react';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Field } from '../ui/field.tsx';
import { type FieldSpec, fieldsOf, inputOf, parseObject } from './schema.ts';

interface Props {
  /** JSON Schema of the input. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly busy: boolean;
  readonly run: (input: Record<string, unknown>) => void;
}

/** Asks for the input that a schema describes, as form fields or as JSON. */
export function InputForm({ schema, busy, run }: Props) {
  const fields = fieldsOf(schema);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [json, setJson] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const asJson = fields === undefined || json !== undefined;
  const read = (): Record<string, unknown> => (asJson ? parseObject(json ?? '') : inputOf(fields, texts));
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    setFailure(undefined);
    try {
      run(read());
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  const switchMode = (): void => {
    if (json !== undefined) return setJson(undefined);
    try {
      setJson(JSON.stringify(read(), null, 2));
    } catch {
      setJson('{}');
    }
  };
  return (
    <form className="fields" onSubmit={onSubmit}>
      {asJson ? (
        <label>
          Input as JSON
          <textarea rows={6} spellCheck={false} value={json ?? ''} onChange={({ target }) => setJson(target.value)} />
        </label>
      ) : (
        fields.map((field) => (
          <FieldInput
            key={field.name}
            field={field}
            text={texts[field.name] ?? ''}
            change={(text) => setTexts({ ...texts, [field.name]: text })}
          />
        ))
      )}
      <ErrorText text={failure} />
      <p className="buttons">
        <Button label="Run" type="submit" look="primary" disabled={busy} />
        {fields !== undefined && fields.length > 0 && (
          <Button label={asJson ? 'Use the form' : 'Write JSON'} onClick={switchMode} />
        )}
      </p>
    </form>
  );
}

const FORMATS = { lines: 'One per line.', json: 'As JSON.', text: '', number: '', choice: '', flag: '' } as const;

function FieldInput({ field, text, change }: { field: FieldSpec; text: string; change: (text: string) => void }) {
  const { name, kind, required, description, choices, defaultText } = field;
  const placeholder = defaultText === '' ? '' : `default: ${defaultText}`;
  const shared = { value: text, required, onChange: ({ target }: { target: { value: string } }) => change(target.value) };
  const label = (
    <>
      <bdi>{name}</bdi>
      {required && <span className="quiet"> (required)</span>}
    </>
  );
  return (
    <Field label={label} hint={`${description} ${FORMATS[kind]}`.trim()}>
      {(about) => {
        switch (kind) {
          case 'text':
            return <input {...about} {...shared} type="text" placeholder={placeholder} />;
          case 'number':
            return <input {...about} {...shared} type="number" step="any" placeholder={placeholder} />;
          case 'choice':
          case 'flag':
            return (
              <select {...about} {...shared}>
                <option value="">{placeholder}</option>
                {(kind === 'flag' ? ['yes', 'no'] : choices).map((choice) => (
                  <option key={choice} value={choice}>
                    {choice}
                  </option>
                ))}
              </select>
            );
          case 'lines':
          case 'json':
            return <textarea {...about} {...shared} rows={3} spellCheck={false} placeholder={placeholder} />;
        }
      }}
    </Field>
  );
}
