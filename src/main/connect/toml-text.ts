import { isDeepStrictEqual } from 'node:util';
import { parse } from 'smol-toml';
import { Failure } from '../../contract/failure.ts';

type Table = Readonly<Record<string, unknown>>;

/** A TOML table that has a header in the text. */
interface Section {
  readonly path: readonly string[];
  /** Position at which the header's line starts. */
  readonly start: number;
  /** Position after the table's last line with a key. Comments after that line belong to the next table. */
  readonly end: number;
}

const NOT_SEPARABLE = 'The entry for Helmdeck Memory cannot be changed without affecting the rest of the file';

const BOM = '\uFEFF';

/**
 * Sets the table at a path. The table's values are strings, lists of strings and tables of strings. Preserves the rest of the
 * text. Parses the result again, and throws unless the result has the intended values.
 */
export function setTable(text: string, path: readonly string[], table: Table): string {
  const before = read(text);
  if (isDeepStrictEqual(plain(at(before, path)), table)) return text;
  const bare = at(before, path) === undefined ? text : dropTable(text, path);
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const after = insertTable(bare, path.slice(0, -1), formatTable(path, table).join(line) + line, line);
  return checked(after, withValue(before, path, table));
}

/** Sets the given keys of an existing table. Keeps the other keys of that table. */
export function setKeys(text: string, path: readonly string[], table: Table): string {
  const before = read(text);
  const now = at(before, path);
  const after = Object.entries(table).reduce((done, [name, value]) => withKey(done, [...path, name], value), text);
  return checked(after, withValue(before, path, merged(now, table)));
}

const merged = (now: unknown, table: Table): Table =>
  Object.entries(table).reduce<Table>(
    (all, [name, value]) => ({ ...all, [name]: isTable(value) ? merged(all[name], value) : value }),
    isTable(now) ? now : {},
  );

function withKey(text: string, path: readonly string[], value: unknown): string {
  const now = at(read(text), path);
  if (isDeepStrictEqual(plain(now), plain(isTable(value) ? merged(now, value) : value))) return text;
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const [own, name = ''] = [path.slice(0, -1), path.at(-1)];
  if (isTable(value) && sectionAt(text, path)) {
    return Object.entries(value).reduce((done, [key, one]) => withKey(done, [...path, key], one), text);
  }
  const section = sectionAt(text, own);
  if (!section) throw refused(NOT_SEPARABLE);
  const existing = valueRange(text, section, name);
  if (existing) {
    const formatted = isTable(value) ? inlineText(merged(now, value)) : valueText(value);
    return text.slice(0, existing.start) + formatted + text.slice(existing.end);
  }
  if (isTable(value)) return insertTable(text, own, formatTable(path, value).join(line) + line, line);
  const head = afterLine(text, section.start);
  const ended = text.slice(0, head).endsWith('\n') ? '' : line;
  return `${text.slice(0, head)}${ended}${formatKey(name)} = ${valueText(value)}${line}${text.slice(head)}`;
}

const sectionAt = (text: string, path: readonly string[]): Section | undefined =>
  sectionsOf(text).find((section) => isDeepStrictEqual(section.path, path));

const inlineText = (table: Table): string =>
  `{ ${Object.entries(table)
    .map(([name, value]) => `${formatKey(name)} = ${valueText(value)}`)
    .join(', ')} }`;

/** Returns the range of a key's value in its table, or undefined if the table has no such key. */
function valueRange(text: string, { start, end }: Section, name: string): { start: number; end: number } | undefined {
  for (let position = afterLine(text, start); position < end; position = afterLine(text, position)) {
    const key = /[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)[ \t]*=[ \t]*/y;
    key.lastIndex = position;
    const [, named = ''] = key.exec(text) ?? [];
    if (named === '' || Object.keys(parse(`${named} = 1`))[0] !== name) continue;
    return { start: key.lastIndex, end: endOfValue(text, key.lastIndex) };
  }
  return undefined;
}

/** Copies the tables at and below a path from `other` to `text`. If `other` has no such tables, removes them. */
export function restoreValue(text: string, path: readonly string[], other = ''): string {
  const bare = dropTable(text, path);
  const original = at(read(other), path);
  if (original === undefined) return bare;
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const tables = sectionsBelow(other, path).map(({ start, end }) => other.slice(start, end).trimEnd() + line);
  return checked(insertTable(bare, path.slice(0, -1), tables.join(line), line), withValue(read(bare), path, original));
}

function dropTable(text: string, path: readonly string[]): string {
  const before = read(text);
  if (at(before, path) === undefined) return text;
  let after = text;
  for (const { start, end } of sectionsBelow(text, path).toReversed()) after = removeRange(after, start, end);
  return checked(after, withValue(before, path, undefined));
}

export const tableAt = (text: string, path: readonly string[]): unknown => plain(at(read(text), path));

function insertTable(text: string, parent: readonly string[], table: string, line: string): string {
  // Insert after the last table with the same parent, or at the end of the text.
  const last = sectionsOf(text).findLast(({ path }) => parent.every((part, index) => path[index] === part));
  const position = last?.end ?? text.length;
  const [before, rest] = [text.slice(0, position), text.slice(position)];
  if (/^[\s\uFEFF]*$/.test(before)) return before + table + rest;
  const ended = before.endsWith('\n') ? before : before + line;
  const gap = /\n\r?\n$/.test(ended) ? '' : line;
  return ended + gap + table + rest;
}

/** Removes a range of the text, and the blank line before the range, which was inserted with it. */
function removeRange(text: string, start: number, end: number): string {
  const before = text.slice(0, start);
  const gap = /(?<=\n|^)\r?\n$/.exec(before)?.[0].length ?? 0;
  return before.slice(0, before.length - gap) + text.slice(end);
}

const formatTable = (path: readonly string[], table: Table): string[] => {
  const own = Object.entries(table).filter(([, value]) => typeof value === 'string' || Array.isArray(value));
  const inner = Object.entries(table).filter(([, value]) => typeof value === 'object' && !Array.isArray(value));
  return [
    `[${path.map(formatKey).join('.')}]`,
    ...own.map(([name, value]) => `${formatKey(name)} = ${valueText(value)}`),
    ...inner.flatMap(([name, value]) => ['', ...formatTable([...path, name], value as Table)]),
  ];
};

const formatKey = (name: string): string => (/^[\w-]+$/.test(name) ? name : quoted(name));

const valueText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => quoted(String(one))).join(', ')}]` : quoted(String(value));

/** Returns a TOML string. All escapes of JSON are valid in TOML, but TOML also requires DEL to be escaped. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007F', '\\u007F');

const sectionsBelow = (text: string, path: readonly string[]): Section[] =>
  sectionsOf(text).filter((section) => path.every((part, index) => section.path[index] === part));

function sectionsOf(text: string): Section[] {
  const sections: { path: string[]; start: number; end: number }[] = [];
  let position = text.startsWith(BOM) ? 1 : 0;
  while (position < text.length) {
    const start = position;
    const first = /[ \t]*/y;
    first.lastIndex = position;
    first.test(text);
    const header = text[first.lastIndex] === '[';
    position = afterLine(text, first.lastIndex);
    const hasContent = /^[ \t]*(\r?\n|#|$)/.test(text.slice(start, start + 200)) ? false : position > start;
    if (header) sections.push({ path: namesIn(text, first.lastIndex), start, end: position });
    else if (hasContent) {
      const last = sections.at(-1);
      if (last) last.end = position;
    }
  }
  return sections;
}

/** Returns the position after a value, without trailing white space and comments. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  let end = from;
  const token = new RegExp(`${TOKEN.source}|[ \\t\\r]+|[^]`, 'g');
  token.lastIndex = from;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [what] = found;
    if (depth === 0 && (what === '\n' || what.startsWith('#'))) break;
    if (what === '[' || what === '{') depth += 1;
    else if (what === ']' || what === '}') depth -= 1;
    if (what.trim() !== '') end = token.lastIndex;
  }
  return end;
}

const TOKEN = /"""(?:[^\\]|\\[^])*?"{3,5}|'''[^]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}\n]/;

/** Returns the start of the next line after a position. Ignores line breaks inside a value. */
function afterLine(text: string, from: number): number {
  let depth = 0;
  const token = new RegExp(TOKEN.source, 'g');
  token.lastIndex = from;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [what] = found;
    if (what === '[' || what === '{') depth += 1;
    else if (what === ']' || what === '}') depth -= 1;
    else if (what === '\n' && depth <= 0) return token.lastIndex;
  }
  return text.length;
}

/** Returns the names in a table header, such as `a` and `b` for `[a.b]`. */
function namesIn(text: string, start: number): string[] {
  const names: string[] = [];
  const token = /\[+|[ \t.]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+|./y;
  token.lastIndex = start;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [what] = found;
    if (what === ']') break;
    if (what.startsWith('"')) names.push(String(Object.keys(parse(`${what} = 1`))[0]));
    else if (what.startsWith("'")) names.push(what.slice(1, -1));
    else if (/^[\w-]/.test(what)) names.push(what);
  }
  return names;
}

function read(text: string): Table {
  try {
    // Parse integers beyond JavaScript's exact range as bigint, so that comparisons remain exact.
    return parse(text.startsWith(BOM) ? text.slice(1) : text, { integersAsBigInt: 'asNeeded' });
  } catch (cause) {
    const line = cause instanceof Error && 'line' in cause ? ` (line ${String(cause.line)})` : '';
    throw refused(`The file is not valid TOML${line}`, cause);
  }
}

function at(table: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isTable(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined), table);
}

const isTable = (value: unknown): value is Table => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns a copy of the table in which the value at a path is replaced. An undefined value removes the existing value and tables
 * that become empty.
 */
function withValue(table: Table, [name = '', ...rest]: readonly string[], value: unknown): Table {
  const inner = Object.hasOwn(table, name) ? table[name] : {};
  const { [name]: _, ...others } = table;
  const changed = rest.length === 0 ? value : withValue(isTable(inner) ? inner : {}, rest, value);
  return changed === undefined || (isTable(changed) && value === undefined && Object.keys(changed).length === 0)
    ? others
    : { ...others, [name]: changed };
}

function checked(text: string, intended: Table): string {
  let actual: unknown;
  try {
    actual = read(text);
  } catch {
    actual = undefined;
  }
  if (isDeepStrictEqual(plain(actual), plain(intended))) return text;
  throw refused(NOT_SEPARABLE);
}

/** Returns a copy without empty tables and without the parser's prototypes, so that two values can be compared. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isTable(value) || value instanceof Date) return value;
  const inner = Object.entries(value).map(([name, one]) => [name, plain(one)] as const);
  return Object.fromEntries(
    inner.filter(([, one]) => !(isTable(one) && !(one instanceof Date) && Object.keys(one).length === 0)),
  );
}

const refused = (reason: string, cause?: unknown): Failure =>
  new Failure('invalid_input', `${reason}, so the file was not changed. Correct the file and try again.`, { cause });
