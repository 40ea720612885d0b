import * as z from 'zod';

/** Creates a schema or a large pattern on first use, so that start-up does not wait for any of them. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= create());
}

/** The parsed type of a lazy schema. */
export type SchemaOutput<Schema extends () => z.ZodType> = z.output<ReturnType<Schema>>;

const utf8 = new TextEncoder();

/** Each UTF-16 unit needs at least one byte in UTF-8, so a text that is much too long need not be encoded. */
export const fitsBytes = (text: string, maxBytes: number): boolean =>
  text.length <= maxBytes && utf8.encode(text).length <= maxBytes;

/**
 * Full Unicode case folding of the compatibility form: ß becomes ss, and the dotless ı becomes i. The text is lower-cased,
 * upper-cased and lower-cased again, because lower-casing alone keeps ß.
 */
export const foldCase = (text: string): string =>
  text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');

/**
 * Puts text from another author on one line. Line breaks and control, format and bidirectional characters are replaced, so that the
 * text cannot imitate the program's own output.
 */
export function oneLine(text: string, maxLength: number): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  if (line.length <= maxLength) return line;
  const cut = line.slice(0, maxLength - 1);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`;
}

/** The text as it looks to a reader: folded, without accents, spaces and invisible characters. */
export const visibleText = (text: string): string =>
  foldCase(text.normalize('NFKD').replace(/[\s\p{M}\p{Default_Ignorable_Code_Point}]/gu, ''));

/** Error messages of schemas have no subject: `explainIssue` puts the name of the field in front of them. */
export const notTextError = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? 'is missing; send it as text' : 'must be text; send it as a JSON string';

interface SchemaMeta {
  title: string;
  description: string;
}

/** The input of an operation. Unknown fields are refused, because ignoring one might do something the caller did not intend. */
export const inputObject = <Shape extends z.core.$ZodLooseShape>(shape: Shape, meta: SchemaMeta) => {
  const fields = Object.keys(shape).join(', ');
  return z
    .strictObject(shape, {
      error: ({ code }) =>
        code === 'unrecognized_keys'
          ? `has an unknown field; ${fields === '' ? 'send no fields' : `send only ${fields}`}`
          : `must be a JSON object; send it ${fields === '' ? 'empty' : `with ${fields}`}`,
    })
    .meta({ ...meta });
};

/** The input of an operation without fields. */
export const noInput = (title: string, description: string) => inputObject({}, { title, description });

export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}; send it as a number`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

export const count = (description: string) => z.int().min(0).describe(description);

export const flag = () => z.boolean({ error: 'must be true or false; send it without quotes' });

const Instant = lazy(() => z.iso.datetime());

/** RFC 3339 in UTC. Not `z.iso.datetime`, because its long pattern would appear in every generated schema. */
export const Time = lazy(() =>
  z
    .string({ error: notTextError })
    .refine((text) => Instant().safeParse(text).success, {
      error: 'must be a UTC time; send it in the form 2026-11-18T09:00:00Z',
    })
    .meta({ format: 'date-time' }),
);

/**
 * Describes the first validation error in one sentence that names the field. The message never quotes the input. Models often send
 * null for an optional field, so for a null in `input` the message adds that the field can be left out.
 */
export function explainIssue(error: z.ZodError, input?: unknown): string {
  const [first] = error.issues;
  if (first === undefined) return 'The request is invalid; compare it with the schema of this operation.';
  const field = first.path.map(String).join('.') || 'The request';
  let value = input;
  for (const part of first.path) value = Object(value)[part];
  const isNull = value === null && first.path.length > 0 && first.message.startsWith('must be');
  return `${field} ${first.message}${isNull ? '; if the field is optional, leave it out instead of sending null' : ''}.`;
}
