import { Failure } from '../../../contract/failure.ts';

/** What stands in a form beside each field, by the field's name on the wire. */
export type Labels = Readonly<Record<string, string>>;

/**
 * Why something did not work, in the words of the form that asked for it. A refusal begins with the field it is about, and who reads
 * the form knows that by its label alone.
 */
export function reasonFor(error: unknown, labels: Labels): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = error;
  const [path = ''] = message.split(' ', 1);
  // Of a list: which of them.
  const [, field = path, place] = /^(\w+)\.(\d+)$/.exec(path) ?? [];
  const label = Object.hasOwn(labels, field) ? labels[field] : undefined;
  if (!(error instanceof Failure) || error.code !== 'invalid_input' || label === undefined) return message;
  return `${label}${place === undefined ? '' : `: number ${Number(place) + 1}`}${message.slice(path.length)}`;
}
