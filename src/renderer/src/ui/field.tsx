import { type ReactNode, type RefObject, useId } from 'react';

interface FieldProps {
  readonly label: ReactNode;
  /** Help text. Describes the input, but is not part of the input's accessible name. */
  readonly hint?: string;
  readonly children: (about: { readonly id: string; readonly 'aria-describedby'?: string }) => ReactNode;
}

export function Field({ label, hint = '', children }: FieldProps) {
  const [id, hintId] = [useId(), useId()];
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(hint === '' ? { id } : { id, 'aria-describedby': hintId })}
      {hint !== '' && (
        <span id={hintId} className="hint">
          {hint}
        </span>
      )}
    </div>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly change: (value: string) => void;
  readonly required?: true;
  readonly secret?: true;
}

export function TextField({ label, hint = '', value, change, required, secret }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(about) => (
        <input
          {...about}
          type={secret ? 'password' : 'text'}
          autoComplete="off"
          required={required}
          value={value}
          onChange={({ target }) => change(target.value)}
        />
      )}
    </Field>
  );
}

interface CheckProps {
  readonly label: string;
  readonly hint: string;
  readonly checked: boolean;
  readonly change: (checked: boolean) => void;
  readonly disabled?: boolean;
}

/** A checkbox with a sentence that says what it does. */
export function Check({ label, hint, checked, change, disabled }: CheckProps) {
  const [id, hintId] = [useId(), useId()];
  return (
    <div className="check-field">
      <input
        type="checkbox"
        id={id}
        aria-describedby={hintId}
        checked={checked}
        disabled={disabled}
        onChange={({ target }) => change(target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      <span id={hintId} className="hint">
        {hint}
      </span>
    </div>
  );
}

interface FileInputProps {
  readonly ref: RefObject<HTMLInputElement | null>;
  readonly label: string;
  readonly accept: string;
  readonly onFile: (file: File) => void;
}

/** A hidden file input. A separate button opens the file dialog. */
export function FileInput({ ref, label, accept, onFile }: FileInputProps) {
  return (
    <input
      ref={ref}
      type="file"
      hidden
      aria-label={label}
      accept={accept}
      onChange={({ target }) => {
        const [file] = target.files ?? [];
        // Clear the value. Otherwise, choosing the same file again would fire no event.
        target.value = '';
        if (file) onFile(file);
      }}
    />
  );
}
