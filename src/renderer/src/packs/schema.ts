/** What a form can ask for. Whatever it cannot is asked for as JSON. */
export interface Field {
  readonly name: string;
  readonly kind: 'text' | 'number' | 'choice' | 'flag' | 'lines' | 'json';
  readonly needed: boolean;
  readonly says: string;
  /** Of a choice. */
  readonly choices: readonly string[];
  /** What holds when it is left empty. */
  readonly usual: string;
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

/** Undefined where the input is no object with named fields: then it is JSON as a whole. */
export function fieldsOf(schema: Readonly<Record<string, unknown>>): readonly Field[] | undefined {
  const { type, properties, required }: Schema = schema;
  if (type !== 'object' || !isRecord(properties)) return undefined;
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(properties).map(([name, property]) => {
    const its: Schema = isRecord(property) ? property : {};
    return {
      name,
      kind: kindOf(its),
      // What has a default may be left out, whatever else is said.
      needed: needed.has(name) && its.default === undefined,
      says: typeof its.description === 'string' ? its.description : '',
      choices: textsIn(its.enum) ?? [],
      usual: its.default === undefined ? '' : spelled(its.default),
    };
  });
}

function kindOf({ type, enum: choices, items }: Schema): Field['kind'] {
  if (textsIn(choices)) return 'choice';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'boolean') return 'flag';
  if (type === 'array' && isRecord(items) && items['type'] === 'string' && items['enum'] === undefined) return 'lines';
  return 'json';
}

/** What was filled in, as the pack's own schema will read it. What was left empty is left out. */
export function inputOf(fields: readonly Field[], texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const filled = fields.flatMap((field): [string, unknown][] => {
    const text = Object.hasOwn(texts, field.name) ? (texts[field.name] ?? '') : '';
    return text === '' ? [] : [[field.name, valueOf(field, text)]];
  });
  return Object.fromEntries(filled);
}

function valueOf({ name, kind }: Field, text: string): unknown {
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
      return parsed(text, name);
  }
}

export function objectIn(text: string): Record<string, unknown> {
  const value = text.trim() === '' ? {} : parsed(text, 'The input');
  if (isRecord(value)) return value;
  throw new Error('The input must be a JSON object; write {} where nothing is needed.');
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`${name} is not JSON; texts stand in double quotes.`);
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const textsIn = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string') ? value : undefined;

const spelled = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
