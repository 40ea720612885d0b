import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../contract/failure.ts';

/** Where something stands in the text: from `start`, and before `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Of an object, or of a list, where it has no name. */
interface Member extends Span {
  readonly name: string | undefined;
  readonly value: Node;
  /** Where its comma is; undefined for a last one without. */
  readonly comma: number | undefined;
}

interface Holder extends Span {
  readonly what: 'object' | 'list';
  readonly members: readonly Member[];
  /** The end of the last thing before the closing brace: a value, a comma, a comment, or the opening brace. */
  readonly last: number;
}

type Node = Holder | (Span & { readonly plain: unknown });

/** Nothing that anybody configures by hand nests so deep; and we nest as deep as what we read. */
const DEEPEST = 100;

const BOM = '\uFEFF';

/** What a client reads: JSON, with comments and commas too many; or JSON5, which goes further. */
type Dialect = 'json' | 'json5';

/** Reads and changes such texts. Every result is read again: what did not come out as it was meant is refused. */
const editing = (dialect: Dialect) => {
  // What is planned, shown and done asks the same text again and again; a large one is not held for that any longer than it has to be.
  let last: WeakRef<{ readonly text: string; readonly node: Node }> | undefined;
  const read = (text: string): Node => {
    const known = last?.deref();
    if (known?.text === text) return known.node;
    const node = new Reader(text, dialect).whole();
    last = new WeakRef({ text, node });
    return node;
  };

  const find = (text: string, path: readonly string[]): Node | undefined =>
    path.reduce<Node | undefined>(
      (node, name, depth) => node && only(holderAt(node, path.slice(0, depth)), name)?.value,
      blank(text) ? undefined : read(text),
    );

  const valueAt = (text: string, path: readonly string[]): unknown => {
    const node = find(text, path);
    return node && plainOf(node);
  };

  /** The text that an edit made of one, which is to say the same but for a value at a path, or for none there. */
  const asMeant = (after: string, before: string, path: readonly string[], value: unknown): string => {
    if (isDeepStrictEqual(said(after), withValue(said(before), path, value))) return after;
    throw refused('It says what is ours in a way that cannot be changed without the rest');
  };

  const said = (text: string): unknown => {
    try {
      return natively(text) ?? valueAt(text, []);
    } catch {
      return undefined;
    }
  };

  const set = (text: string, path: readonly string[], value: unknown): string => {
    if (blank(text)) return `${text.startsWith(BOM) ? BOM : ''}${JSON.stringify(nested(path, value), undefined, 2)}\n`;
    let node = read(text);
    for (const [depth, name] of path.entries()) {
      const object = holderAt(node, path.slice(0, depth));
      const member = only(object, name);
      if (!member) return insert(text, object, nested(path.slice(depth + 1), value), name);
      node = member.value;
    }
    if (isDeepStrictEqual(plainOf(node), value)) return text;
    return text.slice(0, node.start) + spelled(value, styleAt(text, node.start)) + text.slice(node.end);
  };

  const withoutMember = (text: string, path: readonly string[], value: unknown): string => {
    const list = find(text, path);
    const member = list && holderAt(list, path, 'list').members.find((one) => isDeepStrictEqual(plainOf(one.value), value));
    return list && member ? withoutMember(cut(text, list as Holder, member), path, value) : text;
  };

  const setValue = (text: string, path: readonly string[], value: unknown): string =>
    asMeant(set(text, path, value), text, path, value);

  const dropValue = (text: string, path: readonly string[]): string => {
    const object = find(text, path.slice(0, -1));
    const member = object && only(holderAt(object, path.slice(0, -1)), path.at(-1) ?? '');
    return object && member ? asMeant(cut(text, object as Holder, member), text, path, undefined) : text;
  };

  return {
    /** What stands at a path; undefined where nothing does. */
    valueAt,

    /**
     * The text with a value at a path, and else as it stood: comments, order, indentation, line ends and what is not known here.
     * An equal value leaves it as it is.
     */
    setValue,

    /** The text without what stands at a path. */
    dropValue,

    /** The text with what another says at a path, or without anything there where that says nothing. */
    restoreValue: (text: string, path: readonly string[], other = ''): string => {
      const value = valueAt(other, path);
      return value === undefined ? dropValue(text, path) : setValue(text, path, value);
    },

    /** The list at a path, which has to be there, ends with this value too. */
    addToList: (text: string, path: readonly string[], value: unknown): string => {
      const list = find(text, path);
      if (!list) return text;
      const after = insert(text, holderAt(list, path, 'list'), value);
      return asMeant(after, text, path, [...(plainOf(list) as unknown[]), value]);
    },

    /** The list at a path has no such values any more. */
    dropFromList: (text: string, path: readonly string[], value: unknown): string => {
      const list = valueAt(text, path);
      if (list === undefined) return text;
      const after = withoutMember(text, path, value);
      return asMeant(
        after,
        text,
        path,
        (list as unknown[]).filter((one) => !isDeepStrictEqual(one, value)),
      );
    },
  };
};

export const { setValue, dropValue, restoreValue, valueAt } = editing('json');
export const json5 = editing('json5');

/** A fifteenth of what our reader needs, where no comment and nothing of JSON5 keeps it from being read so. */
function natively(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function holderAt(node: Node, path: readonly string[], what: Holder['what'] = 'object'): Holder {
  if ('members' in node && node.what === what) return node;
  const where = path.length === 0 ? 'At its top' : `At ${path.join('.')}`;
  throw refused(`${where} stands something other than ${what === 'list' ? 'a list' : 'an object'}`);
}

function only({ members }: Holder, name: string): Member | undefined {
  const [first, second] = members.filter((member) => member.name === name);
  if (second) throw refused(`It has ${name} twice`);
  return first;
}

/** What ends a line, and a comment with it. */
const LINES = /[\n\r\u2028\u2029]/;

function insert(text: string, holder: Holder, value: unknown, name?: string): string {
  const style = styleAt(text, holder.start);
  const named = name === undefined ? '' : `${JSON.stringify(name)}: `;
  const inside = text.slice(holder.start, holder.end);
  const last = holder.members.at(-1);
  const rest = text.slice(holder.last, holder.end - 1);
  if (last && !LINES.test(inside)) return spliced(text, holder, last, ` ${named}${JSON.stringify(value)}`);
  // Alone in a text of one line it would be the only thing that is not.
  if (!last && !LINES.test(text.trim()) && holder.start > text.search(/[^\s\uFEFF]/)) {
    return text.slice(0, holder.last) + named + JSON.stringify(value) + text.slice(holder.last);
  }
  const indent = last ? (indentOf(text, last.start) ?? style.indent + style.unit) : style.indent + style.unit;
  const member = `${style.line}${indent}${named}${spelled(value, { ...style, indent })}`;
  if (last) return spliced(text, holder, last, member);
  const close = LINES.test(rest) ? '' : style.line + style.indent;
  return text.slice(0, holder.last) + member + close + text.slice(holder.last);
}

/** The comma goes to the value it ends, the new member behind what is said about that value. */
function spliced(text: string, holder: Holder, last: Member, member: string): string {
  const before = text.slice(0, last.value.end);
  const between = text.slice(last.value.end, holder.last);
  const comma = last.comma === undefined;
  return before + (comma ? ',' : '') + between + member + (comma ? '' : ',') + text.slice(holder.last);
}

function cut(text: string, holder: Holder, member: Member): string {
  const before = holder.members[holder.members.indexOf(member) - 1];
  const between = text.slice((before?.comma ?? holder.start) + 1, member.start);
  const behind = member.comma === undefined ? member.value.end : member.comma + 1;
  // Its line end is the end of a comment too, which would take what goes on behind ours into itself.
  const stays = endsWithLineComment(between) && !LAST_OF_LINE.test(text.slice(behind));
  const start = member.start - (stays ? 0 : blanksAt(between, /\s*$/));
  const end = behind + (stays ? blanksAt(text.slice(behind), /^[ \t]*/) : 0);
  // The last one's comma stands with the one before it.
  const comma = member.comma === undefined ? before?.comma : undefined;
  if (comma === undefined) return text.slice(0, start) + text.slice(end);
  return text.slice(0, comma) + text.slice(comma + 1, start) + text.slice(end);
}

const blanksAt = (text: string, side: RegExp): number => side.exec(text)?.[0].length ?? 0;

const LAST_OF_LINE = /^[ \t]*(?:[\n\r\u2028\u2029]|$)/;

/** Of what holds blanks and comments alone. */
const endsWithLineComment = (text: string): boolean =>
  [...text.matchAll(new RegExp(COMMENT.source, 'g'))].at(-1)?.[0].startsWith('//') ?? false;

interface Style {
  readonly line: string;
  /** Of the line that something stands in. */
  readonly indent: string;
  readonly unit: string;
}

function styleAt(text: string, position: number): Style {
  const indented = /\n([ \t]+)["'\w$]/.exec(text)?.[1] ?? '  ';
  const start = text.lastIndexOf('\n', position - 1) + 1;
  return {
    line: text.includes('\r\n') ? '\r\n' : '\n',
    indent: /^\uFEFF?([ \t]*)/.exec(text.slice(start, position))?.[1] ?? '',
    unit: indented,
  };
}

/** Undefined for what does not begin its line. */
function indentOf(text: string, position: number): string | undefined {
  const start = text.lastIndexOf('\n', position - 1) + 1;
  return /^[ \t]*$/.test(text.slice(start, position)) ? text.slice(start, position) : undefined;
}

const spelled = (value: unknown, { line, indent, unit }: Style): string =>
  JSON.stringify(value, undefined, unit.length > 10 ? 2 : unit).replaceAll('\n', line + indent);

const nested = (path: readonly string[], value: unknown): unknown =>
  path.toReversed().reduce((inner, name) => ({ [name]: inner }), value);

/** A copy of what is said with a value at a path, or without one there. */
function withValue(node: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const { [name]: inner, ...others } = Object(node) as Record<string, unknown>;
  const put = withValue(inner, rest, value);
  return put === undefined ? others : { ...others, [name]: put };
}

function plainOf(node: Node): unknown {
  if (!('members' in node)) return node.plain;
  if (node.what === 'list') return node.members.map(({ value }) => plainOf(value));
  return Object.fromEntries(node.members.map(({ name, value }) => [name, plainOf(value)]));
}

const blank = (text: string): boolean => /^[\s\uFEFF]*$/.test(text);

const refused = (what: string, position?: { text: string; at: number }): Failure => {
  const where = position && ` (line ${position.text.slice(0, position.at).split('\n').length})`;
  return new Failure('invalid_input', `${what}${where ?? ''}, so it is left as it is; mend the file, and try again.`);
};

/** A number, or a word that stands for a value. */
const WORDS: Readonly<Record<Dialect, RegExp>> = {
  json: /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y,
  json5: /[+-]?(?:0[xX][\da-fA-F]+|(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)|true|false|null/y,
};
const ESCAPE = /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|0(?!\d)|\r\n|[^ux\d])/.source;
const STRINGS: Readonly<Record<Dialect, RegExp>> = {
  json: /"[^"\\\n]*(?:\\.[^"\\\n]*)*"/y,
  json5: new RegExp(String.raw`"(?:[^"\\\n\r]|${ESCAPE})*"|'(?:[^'\\\n\r]|${ESCAPE})*'`, 'y'),
};
const BLANKS: Readonly<Record<Dialect, RegExp>> = { json: /[ \t\r\n]+/y, json5: /\s+/y };
const COMMENT = /\/\/[^\r\n\u2028\u2029]*|\/\*[^]*?\*\//y;
/** A key without quotes, as JavaScript names things; what is escaped in it is looked at when it is not any more. */
const NAME = /(?:[\p{ID_Continue}$\u200C\u200D]|\\u[\da-fA-F]{4})+/uy;
const UNESCAPED_NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200C\u200D]*$/u;

class Reader {
  readonly #text: string;
  readonly #dialect: Dialect;
  #at: number;
  #deep = 0;

  constructor(text: string, dialect: Dialect) {
    this.#text = text;
    this.#dialect = dialect;
    this.#at = text.startsWith(BOM) ? 1 : 0;
  }

  whole(): Node {
    this.#skip();
    const node = this.#value();
    this.#skip();
    if (this.#at < this.#text.length) throw this.#broken();
    return node;
  }

  #value(): Node {
    const char = this.#text[this.#at];
    if (char === '{') return this.#holder('object');
    if (char === '[') return this.#holder('list');
    const start = this.#at;
    const string = this.#match(STRINGS[this.#dialect]);
    if (string) return { ...string, plain: this.#parsed(string) };
    const word = this.#match(WORDS[this.#dialect]);
    if (!word || this.#match(NAME)) throw this.#broken(start);
    return { ...word, plain: this.#parsed(word) };
  }

  #holder(what: Holder['what']): Holder {
    if ((this.#deep += 1) > DEEPEST) throw refused(`It nests deeper than ${DEEPEST} levels`);
    const close = what === 'object' ? '}' : ']';
    const start = this.#at;
    this.#at += 1;
    let last = this.#skip();
    const members: Member[] = [];
    while (this.#text[this.#at] !== close) {
      const from = this.#at;
      const name = what === 'object' ? this.#name() : undefined;
      const value = this.#value();
      last = this.#skip();
      const comma = this.#text[this.#at] === ',' ? this.#at : undefined;
      if (comma !== undefined) {
        this.#at += 1;
        last = this.#skip();
      } else if (this.#text[this.#at] !== close) throw this.#broken();
      members.push({ name, start: from, end: value.end, value, comma });
    }
    this.#at += 1;
    this.#deep -= 1;
    return { what, start, end: this.#at, members, last };
  }

  #name(): string {
    const span = this.#match(STRINGS[this.#dialect]) ?? (this.#dialect === 'json5' ? this.#match(NAME) : undefined);
    if (!span) throw this.#broken();
    const bare = !/["']/.test(this.#text[span.start] ?? '');
    const name = bare ? unescaped(this.#text.slice(span.start, span.end)) : String(this.#parsed(span));
    if (bare && !UNESCAPED_NAME.test(name)) throw this.#broken(span.start);
    this.#skip();
    if (this.#text[this.#at] !== ':') throw this.#broken();
    this.#at += 1;
    this.#skip();
    return name;
  }

  #parsed({ start, end }: Span): unknown {
    const said = this.#text.slice(start, end);
    try {
      return JSON.parse(said);
    } catch {
      if (this.#dialect === 'json') throw this.#broken(start);
      if (/^["']/.test(said)) return unescaped(said.slice(1, -1));
      return /^[+-]/.test(said) ? Number(said.slice(1)) * (said.startsWith('-') ? -1 : 1) : Number(said);
    }
  }

  #match(pattern: RegExp): Span | undefined {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return undefined;
    const start = this.#at;
    this.#at = pattern.lastIndex;
    return { start, end: this.#at };
  }

  /** Over blanks and comments; the end of the last thing that was not blank. */
  #skip(): number {
    let last = this.#at;
    for (;;) {
      this.#match(BLANKS[this.#dialect]);
      const comment = this.#match(COMMENT);
      if (!comment) return last;
      last = comment.end;
    }
  }

  #broken(at = this.#at): Failure {
    return refused(`It is not ${this.#dialect === 'json' ? 'JSON' : 'JSON5'}`, { text: this.#text, at });
  }
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', 0: '\0' };

/** What JSON5 writes with a backslash: a line that goes on behind it is one line. */
const unescaped = (said: string): string =>
  said.replaceAll(/\\(?:u([\da-fA-F]{4})|x([\da-fA-F]{2})|(\r\n|[^]))/g, (_all, wide?: string, narrow?: string, other = '') => {
    const code = wide ?? narrow;
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    return /^[\r\n\u2028\u2029]/.test(other) ? '' : (ESCAPES[other] ?? other);
  });
