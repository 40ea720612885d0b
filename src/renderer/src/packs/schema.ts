/** A form field for one property of a JSON Schema. A property of an unsupported type is entered as JSON. */
export interface FieldSpec {
  readonly name: string;
  readonly kind: 'text' | 'number' | 'choice' | 'flag' | 'lines' | 'json';
  readonly required: boolean;
  readonly description: string;
  /** The options of a `choice`. */
  readonly choices: readonly string[];
  /** The default value as text; empty if there is no default. */
  readonly defaultText: string;
}

interface Schema {
  readonly type?: unknown;
  readonly description?: unknown;
  readonly default?: unknown;
  readonly enum?: unknown;
  readonly items?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
}

/** The form fields of an object schema; undefined for any other schema, whose input is entered as JSON. */
export function fieldsOf(schema: Readonly<Record<string, unknown>>): readonly FieldSpec[] | undefined {
  const { type, properties, required }: Schema = schema;
  if (type !== 'object' || !isRecord(properties)) return undefined;
  const requiredNames = new Set(Array.isArray(required) ? required : []);
  return Object.entries(properties).map(([name, property]) => {
    const spec: Schema = isRecord(property) ? property : {};
    return {
      name,
      kind: kindOf(spec),
      // A schema can list a property as required although it has a default. The owner can leave such a field empty.
      required: requiredNames.has(name) && spec.default === undefined,
      description: typeof spec.description === 'string' ? spec.description : '',
      choices: stringsOf(spec.enum) ?? [],
      defaultText: spec.default === undefined ? '' : textOf(spec.default),
    };
  });
}

function kindOf({ type, enum: choices, items }: Schema): FieldSpec['kind'] {
  if (stringsOf(choices)) return 'choice';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'boolean') return 'flag';
  if (type === 'array' && isRecord(items) && items['type'] === 'string' && items['enum'] === undefined) return 'lines';
  return 'json';
}

/** Builds the input from the texts of the form fields. Empty fields are omitted. */
export function inputOf(fields: readonly FieldSpec[], texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const filled = fields.flatMap((field): [string, unknown][] => {
    const text = Object.hasOwn(texts, field.name) ? (texts[field.name] ?? '') : '';
    return text === '' ? [] : [[field.name, valueOf(field, text)]];
  });
  return Object.fromEntries(filled);
}

function valueOf({ name, kind }: FieldSpec, text: string): unknown {
  switch (kind) {
    case 'text':
    case 'choice':
      return text;
    case 'number':
      return Number(text);
    case 'flag':
      return text === 'yes';
    case 'lines':
      return text.split('\n').filter((line) => line.trim() !== '');
    case 'json':
      return parse(text, name);
  }
}

export function parseObject(text: string): Record<string, unknown> {
  const value = text.trim() === '' ? {} : parse(text, 'The input');
  if (isRecord(value)) return value;
  throw new Error('The input must be a JSON object. Write {} for an empty object.');
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`${name} is not valid JSON. Put text in double quotes.`);
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const stringsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string') ? value : undefined;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
