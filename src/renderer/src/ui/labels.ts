import { Failure } from '../../../contract/failure.ts';

/** The visible label of each form field, by the field's name on the wire. */
export type Labels = Readonly<Record<string, string>>;

/** The message of an error. If it starts with the wire name of a field, the field's label replaces that name (R-WIN-42). */
export function errorText(error: unknown, labels: Labels): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = error;
  const [path = ''] = message.split(' ', 1);
  // `tags.0` names an item of a list.
  const [, field = path, index] = /^(\w+)\.(\d+)$/.exec(path) ?? [];
  const label = Object.hasOwn(labels, field) ? labels[field] : undefined;
  if (!(error instanceof Failure) || error.code !== 'invalid_input' || label === undefined) return message;
  return `${label}${index === undefined ? '' : `: number ${Number(index) + 1}`}${message.slice(path.length)}`;
}
