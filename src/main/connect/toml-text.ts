import { isDeepStrictEqual } from 'node:util';
import { parse } from 'smol-toml';
import { Failure } from '../../contract/failure.ts';

type Table = Readonly<Record<string, unknown>>;

/** A table of its own: from its header to where the next begins. */
interface Section {
  readonly path: readonly string[];
  /** Of the header's line. */
  readonly start: number;
  /** Behind the last line that says something: what follows, comments too, is about what comes next. */
  readonly end: number;
}

const NOT_ALONE = 'It says what is ours in a way that cannot be changed without the rest';

const BOM = '\uFEFF';

/**
 * The text with a table of texts, lists of texts and one table of texts at a path, and else as it stood. What is there already and equal is left as
 * it is. The result is read again: what did not come out as it was meant is refused.
 */
export function setTable(text: string, path: readonly string[], table: Table): string {
  const before = read(text);
  if (isDeepStrictEqual(plain(at(before, path)), table)) return text;
  const bare = at(before, path) === undefined ? text : dropTable(text, path);
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const after = placed(bare, path.slice(0, -1), spelled(path, table).join(line) + line, line);
  return asMeant(after, withValue(before, path, table));
}

/** The text with what a table of texts, lists of texts and tables of texts says in the table at a path, which has to be there. */
export function setKeys(text: string, path: readonly string[], table: Table): string {
  const before = read(text);
  const now = at(before, path);
  const after = Object.entries(table).reduce((done, [name, value]) => withKey(done, [...path, name], value), text);
  return asMeant(after, withValue(before, path, merged(now, table)));
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
  if (!section) throw refused(NOT_ALONE);
  const there = valueOf(text, section, name);
  if (there) {
    const said = isTable(value) ? inlineText(merged(now, value)) : valueText(value);
    return text.slice(0, there.start) + said + text.slice(there.end);
  }
  if (isTable(value)) return placed(text, own, spelled(path, value).join(line) + line, line);
  const head = afterLine(text, section.start);
  const ended = text.slice(0, head).endsWith('\n') ? '' : line;
  return `${text.slice(0, head)}${ended}${word(name)} = ${valueText(value)}${line}${text.slice(head)}`;
}

const sectionAt = (text: string, path: readonly string[]): Section | undefined =>
  sectionsOf(text).find((section) => isDeepStrictEqual(section.path, path));

const inlineText = (table: Table): string =>
  `{ ${Object.entries(table)
    .map(([name, value]) => `${word(name)} = ${valueText(value)}`)
    .join(', ')} }`;

/** Where the value of a key stands in its table. */
function valueOf(text: string, { start, end }: Section, name: string): { start: number; end: number } | undefined {
  for (let position = afterLine(text, start); position < end; position = afterLine(text, position)) {
    const key = /[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)[ \t]*=[ \t]*/y;
    key.lastIndex = position;
    const [, named = ''] = key.exec(text) ?? [];
    if (named === '' || Object.keys(parse(`${named} = 1`))[0] !== name) continue;
    return { start: key.lastIndex, end: endOfValue(text, key.lastIndex) };
  }
  return undefined;
}

/** The text with the tables at and below a path as they stand in another text, or without where that has none. */
export function restoreValue(text: string, path: readonly string[], other = ''): string {
  const bare = dropTable(text, path);
  const theirs = at(read(other), path);
  if (theirs === undefined) return bare;
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const tables = sectionsBelow(other, path).map(({ start, end }) => other.slice(start, end).trimEnd() + line);
  return asMeant(placed(bare, path.slice(0, -1), tables.join(line), line), withValue(read(bare), path, theirs));
}

/** The text without the tables at and below a path. */
function dropTable(text: string, path: readonly string[]): string {
  const before = read(text);
  if (at(before, path) === undefined) return text;
  let after = text;
  for (const { start, end } of sectionsBelow(text, path).toReversed()) after = cut(after, start, end);
  return asMeant(after, withValue(before, path, undefined));
}

/** What stands at a path; undefined where nothing does. */
export const tableAt = (text: string, path: readonly string[]): unknown => plain(at(read(text), path));

function placed(text: string, beside: readonly string[], table: string, line: string): string {
  // Among its like, else at the end: what stands before the first header belongs to no table.
  const last = sectionsOf(text).findLast(({ path }) => beside.every((part, index) => path[index] === part));
  const position = last?.end ?? text.length;
  const [before, rest] = [text.slice(0, position), text.slice(position)];
  if (/^[\s\uFEFF]*$/.test(before)) return before + table + rest;
  const ended = before.endsWith('\n') ? before : before + line;
  const gap = /\n\r?\n$/.test(ended) ? '' : line;
  return ended + gap + table + rest;
}

/** With the blank line before it, which came with it. */
function cut(text: string, start: number, end: number): string {
  const before = text.slice(0, start);
  const gap = /(?<=\n|^)\r?\n$/.exec(before)?.[0].length ?? 0;
  return before.slice(0, before.length - gap) + text.slice(end);
}

const spelled = (path: readonly string[], table: Table): string[] => {
  const own = Object.entries(table).filter(([, value]) => typeof value === 'string' || Array.isArray(value));
  const inner = Object.entries(table).filter(([, value]) => typeof value === 'object' && !Array.isArray(value));
  return [
    `[${path.map(word).join('.')}]`,
    ...own.map(([name, value]) => `${word(name)} = ${valueText(value)}`),
    ...inner.flatMap(([name, value]) => ['', ...spelled([...path, name], value as Table)]),
  ];
};

const word = (name: string): string => (/^[\w-]+$/.test(name) ? name : quoted(name));

const valueText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => quoted(String(one))).join(', ')}]` : quoted(String(value));

/** JSON escapes what TOML does, and DEL, which TOML wants escaped too. */
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
    const said = /^[ \t]*(\r?\n|#|$)/.test(text.slice(start, start + 200)) ? false : position > start;
    if (header) sections.push({ path: namesIn(text, first.lastIndex), start, end: position });
    else if (said) {
      const last = sections.at(-1);
      if (last) last.end = position;
    }
  }
  return sections;
}

/** Before the blanks, the comment or the line end that follow it. */
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

/** Behind the end of a line, and of a value that goes on over several. */
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

/** The names in a header, quoted or bare. */
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
    // Numbers that JavaScript cannot hold are somebody else's, and stay what they are.
    return parse(text.startsWith(BOM) ? text.slice(1) : text, { integersAsBigInt: 'asNeeded' });
  } catch (cause) {
    const line = cause instanceof Error && 'line' in cause ? ` (line ${String(cause.line)})` : '';
    throw refused(`It is not TOML${line}`, cause);
  }
}

function at(table: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isTable(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined), table);
}

const isTable = (value: unknown): value is Table => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A copy with a value at a path, or without; what becomes empty by that may go or stay. */
function withValue(table: Table, [name = '', ...rest]: readonly string[], value: unknown): Table {
  const inner = Object.hasOwn(table, name) ? table[name] : {};
  const { [name]: _, ...others } = table;
  const put = rest.length === 0 ? value : withValue(isTable(inner) ? inner : {}, rest, value);
  return put === undefined || (isTable(put) && value === undefined && Object.keys(put).length === 0)
    ? others
    : { ...others, [name]: put };
}

function asMeant(text: string, meant: Table): string {
  let came: unknown;
  try {
    came = read(text);
  } catch {
    came = undefined;
  }
  if (isDeepStrictEqual(plain(came), plain(meant))) return text;
  throw refused(NOT_ALONE);
}

/** Without tables that are empty, and without prototypes of the parser's own. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isTable(value) || value instanceof Date) return value;
  const inner = Object.entries(value).map(([name, one]) => [name, plain(one)] as const);
  return Object.fromEntries(
    inner.filter(([, one]) => !(isTable(one) && !(one instanceof Date) && Object.keys(one).length === 0)),
  );
}

const refused = (what: string, cause?: unknown): Failure =>
  new Failure('invalid_input', `${what}, so it is left as it is; mend the file, and try again.`, { cause });
