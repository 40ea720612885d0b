import { Failure } from '../contract/failure.ts';

/** Fields as a query spells them, in the types that the operation's schema asks for. A field it does not know, it refuses. */
export type QueryReader = (query: string) => Record<string, unknown>;

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** Reads queries for an operation, by the JSON Schema of its input. */
export function createQueryReader({ properties = {} }: Schema): QueryReader {
  const types = new Map(Object.entries(properties).map(([name, field]) => [name, (field as { type?: string }).type]));
  return (query) => {
    const fields = new Map<string, unknown>();
    for (const pair of query === '' ? [] : query.split('&')) {
      const equals = pair.indexOf('=');
      const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
      const text = decodeComponent(equals === -1 ? '' : pair.slice(equals + 1));
      if (fields.has(name)) throw new Failure('invalid_input', 'The query has a field twice; send each once.');
      fields.set(name, convert(text, types.get(name)));
    }
    // An own field for every name, `__proto__` too: none of them reaches a prototype.
    return Object.fromEntries(fields);
  };
}

/** What cannot be converted stays text, and the schema says what it should have been. */
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
    throw new Failure('invalid_input', 'The address has a "%" that is not followed by UTF-8 in hexadecimal; encode it anew.');
  }
}
