import { IMPORT_TEXT } from '../../contract/limits.ts';
import { withSubject, type ImportEntry, type UnusableEntry, linesIn, type SourceReader, limitEntries } from './import-entry.ts';
import { toCategory, toTags } from './naming.ts';

/** Reads the knowledge graph of the MCP reference memory server: a record on each line, or a single object with all records. */
export const readGraph: SourceReader = (text) => {
  const entries: ImportEntry[] = [];
  const unusable: UnusableEntry[] = [];
  for (const { line, record, text: source } of recordsIn(text)) {
    const reject = (message: string, what = source): void => void unusable.push({ line, text: what, message });
    if (record === undefined) reject('The line is not JSON.');
    else if (isEntity(record)) addEntity(record, line, { entries, reject });
    else if (isRelation(record)) entries.push(relation(record, line));
    else reject('The record is neither an entity with observations nor a relation.');
  }
  return { entries, unusable };
};

interface Output {
  readonly entries: ImportEntry[];
  readonly reject: (message: string, what?: string) => void;
}

function addEntity({ name, entityType: type, observations }: Entity, line: number, { entries, reject }: Output): void {
  if (name.length > IMPORT_TEXT.name)
    return reject(`The name of the entity is longer than ${IMPORT_TEXT.name} characters; shorten it in the other program.`);
  if (observations.length === 0) return reject('The entity has no observations.');
  const category = typeof type === 'string' ? toCategory(type) : undefined;
  // If the type is not a valid category, it becomes a tag.
  const tags = toTags(category === undefined && typeof type === 'string' ? [name, type] : [name]);
  for (const observation of observations) {
    if (typeof observation !== 'string' || observation.trim() === '')
      reject('The observation is not a text, or is blank.', spelled(observation));
    else entries.push({ line, value: withSubject(name, observation.trim()), keyParts: [name, observation], category, tags });
  }
}

const relation = ({ from, to, relationType: type }: Relation, line: number): ImportEntry => ({
  line,
  value: `${from} ${type.replaceAll('_', ' ')} ${to}`,
  keyParts: [from, `${type} ${to}`],
  category: 'relations',
  tags: toTags([from, to]),
});

interface Entity {
  readonly name: string;
  readonly entityType?: unknown;
  readonly observations: readonly unknown[];
}

interface Relation {
  readonly from: string;
  readonly to: string;
  readonly relationType: string;
}

interface NumberedRecord {
  readonly line: number;
  /** The parsed record; undefined if the line is not JSON. */
  readonly record: unknown;
  readonly text: string;
}

function recordsIn(text: string): NumberedRecord[] {
  const whole = parsed(text.replace(/^\uFEFF/, ''));
  const together = Array.isArray(whole) ? (whole as unknown[]) : graphIn(whole);
  if (together) return together.map((record) => ({ line: 1, record, text: spelled(record) }));
  const lines = linesIn(text).flatMap((line, index) => (line.trim() === '' ? [] : [{ line: index + 1, text: line }]));
  limitEntries(lines.length);
  return lines.map((line) => ({ ...line, record: parsed(line.text) }));
}

/**
 * Returns the records of a `read_graph` response or of a file of an older server. Returns undefined if the value is a single
 * record, as in a file with a single line.
 */
function graphIn(whole: unknown): unknown[] | undefined {
  if (!isObject(whole) || (!('entities' in whole) && !('relations' in whole))) return undefined;
  return [whole['entities'], whole['relations']].flatMap((list) => (list === undefined ? [] : list));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the JSON of a value, for a message. Returns an empty string if the value is nested too deeply for `JSON.stringify`. */
function spelled(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const isEntity = (record: unknown): record is Entity =>
  isObject(record) && typeof record['name'] === 'string' && Array.isArray(record['observations']);

const isRelation = (record: unknown): record is Relation =>
  isObject(record) && ['from', 'to', 'relationType'].every((field) => typeof record[field] === 'string');
