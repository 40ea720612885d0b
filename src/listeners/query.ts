import { Failure } from '../contract/failure.ts';

/** Parses a query into fields, converted to the types in the operation's schema. The schema later rejects unknown fields. */
export type QueryReader = (query: string) => Record<string, unknown>;

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** Takes the JSON Schema of the operation's input. */
export function createQueryReader({ properties = {} }: Schema): QueryReader {
  const types = new Map(Object.entries(properties).map(([name, field]) => [name, (field as { type?: string }).type]));
  return (query) => {
    const fields = new Map<string, unknown>();
    for (const pair of query === '' ? [] : query.split('&')) {
      const equals = pair.indexOf('=');
      const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
      const text = decodeComponent(equals === -1 ? '' : pair.slice(equals + 1));
      if (fields.has(name)) throw new Failure('invalid_input', 'The query has the same field twice; send each field once.');
      fields.set(name, convert(text, types.get(name)));
    }
    // Object.fromEntries creates own properties, so a field named `__proto__` cannot change the prototype.
    return Object.fromEntries(fields);
  };
}

/** Leaves text that does not convert as it is; validation then reports the expected type. */
function convert(text: string, type: string | undefined): unknown {
  if (type === 'boolean') return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
  if ((type === 'integer' || type === 'number') && /^-?\d{1,17}(\.\d{1,17})?$/.test(text)) return Number(text);
  return text;
}

export function decodeComponent(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new Failure('invalid_input', 'The URL has an invalid percent-encoding; encode its text as UTF-8.');
  }
}
