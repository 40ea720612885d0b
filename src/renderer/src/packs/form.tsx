import { type FormEvent, useState } from 'react';
import { Labelled } from '../ui/labelled.tsx';
import { Failed } from '../ui/refused.tsx';
import { type Field, fieldsOf, inputOf, objectIn } from './schema.ts';

interface Props {
  /** JSON Schema of the input. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly act: string;
  readonly busy: boolean;
  readonly run: (input: Record<string, unknown>) => void;
}

/** Asks for what a schema describes, field by field or as JSON. */
export function InputForm({ schema, act, busy, run }: Props) {
  const fields = fieldsOf(schema);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [json, setJson] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const asJson = fields === undefined || json !== undefined;
  const read = (): Record<string, unknown> => (asJson ? objectIn(json ?? '') : inputOf(fields, texts));
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    setFailure(undefined);
    try {
      run(read());
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  const turn = (): void => {
    if (json !== undefined) return setJson(undefined);
    // What was filled in goes along, as far as it can be read.
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
      <Failed text={failure} />
      <p className="buttons">
        <button className="button primary" disabled={busy}>
          {act}
        </button>
        {fields !== undefined && fields.length > 0 && (
          <button type="button" className="button" onClick={turn}>
            {asJson ? 'Fill in a form' : 'Write JSON'}
          </button>
        )}
      </p>
    </form>
  );
}

function FieldInput({ field, text, change }: { field: Field; text: string; change: (text: string) => void }) {
  const { name, kind, needed, says, choices, usual } = field;
  const hear = ({ target }: { target: { value: string } }): void => change(target.value);
  const empty = usual === '' ? '' : `as usual: ${usual}`;
  const shared = { value: text, required: needed, onChange: hear };
  const options = kind === 'flag' ? ['yes', 'no'] : choices;
  const how = { lines: 'One on each line.', json: 'As JSON.', text: '', number: '', choice: '', flag: '' }[kind];
  return (
    <Labelled label={<NameOf name={name} needed={needed} />} hint={`${says} ${how}`.trim()}>
      {(about) => {
        switch (kind) {
          case 'text':
            return <input {...about} {...shared} type="text" placeholder={empty} />;
          case 'number':
            return <input {...about} {...shared} type="number" step="any" placeholder={empty} />;
          case 'choice':
          case 'flag':
            return (
              <select {...about} {...shared}>
                <option value="">{empty}</option>
                {options.map((choice) => (
                  <option key={choice} value={choice}>
                    {choice}
                  </option>
                ))}
              </select>
            );
          case 'lines':
          case 'json':
            return <textarea {...about} {...shared} rows={3} spellCheck={false} placeholder={empty} />;
        }
      }}
    </Labelled>
  );
}

function NameOf({ name, needed }: { name: string; needed: boolean }) {
  return (
    <>
      <bdi>{name}</bdi>
      {needed && <span className="quiet"> (needed)</span>}
    </>
  );
}
