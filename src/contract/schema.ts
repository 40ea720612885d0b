import * as z from 'zod';

/** Returns a function that creates a value on first use. Schemas and large patterns are created lazily to keep startup fast. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= create());
}

/** The type of the values that a lazy schema parses to. */
export type SchemaOutput<Schema extends () => z.ZodType> = z.output<ReturnType<Schema>>;

const utf8 = new TextEncoder();

/** Maximum bytes in UTF-8 of one UTF-16 unit. */
const MAX_UNIT_BYTES = 3;

/** Whether the text has at most `maxBytes` bytes in UTF-8. Text is encoded only if its length does not decide this. */
export const fitsBytes = (text: string, maxBytes: number): boolean =>
  text.length * MAX_UNIT_BYTES <= maxBytes || (text.length <= maxBytes && utf8.encode(text).length <= maxBytes);

/** Whether the text contains only printable ASCII characters, which have one spelling. Most names do. */
const isPlain = (text: string): boolean => /^[ -~]*$/.test(text);

/**
 * Folds the case of a text and normalizes it to NFKC, so that different spellings of a name become equal: ß becomes ss, and
 * dotless ı becomes i. The text is also upper-cased in between, because lower-casing alone does not change ß.
 */
export const foldCase = (text: string): string =>
  isPlain(text) ? text.toLowerCase() : text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');

/**
 * Puts text from another author on one line of at most `maxLength` UTF-16 units. Line breaks and control characters are replaced
 * by spaces, so that the text cannot imitate output of this program.
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

/**
 * Returns the text with its case folded and without accents, spaces and invisible characters, so that texts that look alike are
 * equal.
 */
export const visibleText = (text: string): string =>
  isPlain(text)
    ? text.replaceAll(' ', '').toLowerCase()
    : foldCase(text.normalize('NFKD').replace(/[\s\p{M}\p{Default_Ignorable_Code_Point}]/gu, ''));

/**
 * The error message for a field that must be text. It begins with a verb, because `explainIssue` puts the field's name before it.
 */
export const notTextError = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? 'is missing; send it as text' : 'must be text; send it as a JSON string';

interface SchemaMeta {
  title: string;
  description: string;
}

/**
 * Creates the schema of an operation's input. Unknown fields are refused, because the caller expects every field to have an
 * effect.
 */
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

export const noInput = (title: string, description: string) => inputObject({}, { title, description });

export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}; send it as a number`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

export const count = (description: string) => z.int().min(0).describe(description);

export const flag = () => z.boolean({ error: 'must be true or false; send it without quotes' });

const Instant = lazy(() => z.iso.datetime());

/**
 * An RFC 3339 time in UTC. Does not use `z.iso.datetime` directly, because its long pattern would appear in every generated
 * schema.
 */
export const Time = lazy(() =>
  z
    .string({ error: notTextError })
    .refine((text) => Instant().safeParse(text).success, {
      error: 'must be a UTC time; send it in the form 2026-11-18T09:00:00Z',
    })
    .meta({ format: 'date-time' }),
);

/**
 * Describes the first validation error in one sentence that starts with the field's name. The sentence never quotes the input,
 * which could be a secret. If the field is null, the sentence suggests leaving it out, because models often send null for
 * optional fields.
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
