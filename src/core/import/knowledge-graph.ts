import { IMPORT_TEXT } from '../../contract/limits.ts';
import { withSubject, type ImportEntry, type UnusableEntry, linesIn, type SourceReader, limitEntries } from './import-entry.ts';
import { toCategory, toTags } from './naming.ts';

/** The knowledge graph of the reference memory server: a record on each line, or all of it as one object. */
export const readGraph: SourceReader = (text) => {
  const found: ImportEntry[] = [];
  const left: UnusableEntry[] = [];
  for (const { line, record, text: said } of recordsIn(text)) {
    const leave = (message: string, what = said): void => void left.push({ line, text: what, message });
    if (record === undefined) leave('The line is not JSON.');
    else if (isEntity(record)) takeEntity(record, line, { found, leave });
    else if (isRelation(record)) found.push(relation(record, line));
    else leave('It is neither an entity with observations nor a relation.');
  }
  return { entries: found, unusable: left };
};

interface Into {
  readonly found: ImportEntry[];
  readonly leave: (message: string, what?: string) => void;
}

function takeEntity({ name, entityType: type, observations }: Entity, line: number, { found, leave }: Into): void {
  if (name.length > IMPORT_TEXT.name) return leave(`Its name is longer than ${IMPORT_TEXT.name} characters; shorten it there.`);
  if (observations.length === 0) return leave('Nothing was observed about it.');
  const category = typeof type === 'string' ? toCategory(type) : undefined;
  // What cannot be a category is not lost.
  const tags = toTags(category === undefined && typeof type === 'string' ? [name, type] : [name]);
  for (const observation of observations) {
    if (typeof observation !== 'string' || observation.trim() === '')
      leave('The observation is not a text, or blank.', spelled(observation));
    else found.push({ line, value: withSubject(name, observation.trim()), named: [name, observation], category, tags });
  }
}

const relation = ({ from, to, relationType: type }: Relation, line: number): ImportEntry => ({
  line,
  value: `${from} ${type.replaceAll('_', ' ')} ${to}`,
  named: [from, `${type} ${to}`],
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

interface Numbered {
  readonly line: number;
  /** Undefined where the line is no JSON. */
  readonly record: unknown;
  readonly text: string;
}

function recordsIn(text: string): Numbered[] {
  const whole = parsed(text.replace(/^\uFEFF/, ''));
  const together = Array.isArray(whole) ? (whole as unknown[]) : graphIn(whole);
  if (together) return together.map((record) => ({ line: 1, record, text: spelled(record) }));
  const lines = linesIn(text).flatMap((line, index) => (line.trim() === '' ? [] : [{ line: index + 1, text: line }]));
  limitEntries(lines.length);
  return lines.map((line) => ({ ...line, record: parsed(line.text) }));
}

/** As `read_graph` answers it, and as older servers kept it. A single line that is a record is a file of one line. */
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

/** To show how it begins. What is nested too deeply to be written again has no beginning worth showing. */
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
