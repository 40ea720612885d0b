import { Labelled } from './labelled.tsx';

interface Props {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly change: (value: string) => void;
  readonly needed?: true;
  /** Not to be read over a shoulder. */
  readonly secret?: true;
}

/** A line of text. The browser offers nothing that was typed into another one. */
export function TextField({ label, hint = '', value, change, needed, secret }: Props) {
  return (
    <Labelled label={label} hint={hint}>
      {(about) => (
        <input
          {...about}
          type={secret ? 'password' : 'text'}
          autoComplete="off"
          required={needed}
          value={value}
          onChange={({ target }) => change(target.value)}
        />
      )}
    </Labelled>
  );
}
