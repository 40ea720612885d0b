import { Failure } from '../../../contract/failure.ts';

/** The visible label of each form field, by the field's name in the API. */
export type Labels = Readonly<Record<string, string>>;

/**
 * Returns the message of an error. If the message starts with the API name of a field, replaces that name with the field's label
 * (R-WIN-42).
 */
export function errorText(error: unknown, labels: Labels): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = error;
  const [path = ''] = message.split(' ', 1);
  // A path such as `tags.0` refers to one item of a list.
  const [, field = path, index] = /^(\w+)\.(\d+)$/.exec(path) ?? [];
  const label = Object.hasOwn(labels, field) ? labels[field] : undefined;
  if (!(error instanceof Failure) || error.code !== 'invalid_input' || label === undefined) return message;
  return `${label}${index === undefined ? '' : `: number ${Number(index) + 1}`}${message.slice(path.length)}`;
}
