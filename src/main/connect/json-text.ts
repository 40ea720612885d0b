import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../contract/failure.ts';

/** Where something stands in the text: from `start`, and before `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

interface Member {
  readonly name: string;
  readonly key: Span;
  readonly value: Node;
  /** Where its comma is; undefined for a last one without. */
  readonly comma: number | undefined;
}

interface ObjectNode extends Span {
  readonly members: readonly Member[];
  /** The end of the last thing before the closing brace: a value, a comma, a comment, or the opening brace. */
  readonly last: number;
}

type Node = ObjectNode | (Span & { readonly plain: unknown });

/** Nothing that anybody configures by hand nests so deep; and we nest as deep as what we read. */
const DEEPEST = 100;

const BOM = '\uFEFF';

/**
 * The text with a value at a path, and else as it stood: comments, order, indentation, line ends and what is not known here.
 * An equal value leaves it as it is. Reads what clients read: JSON, with comments and commas too many.
 */
export function setValue(text: string, path: readonly string[], value: unknown): string {
  if (blank(text)) return `${text.startsWith(BOM) ? BOM : ''}${JSON.stringify(nested(path, value), undefined, 2)}\n`;
  let node = read(text);
  for (const [depth, name] of path.entries()) {
    const object = objectAt(node, path.slice(0, depth));
    const member = only(object, name);
    if (!member) return insert(text, object, name, nested(path.slice(depth + 1), value));
    node = member.value;
  }
  if (isDeepStrictEqual(plainOf(node), value)) return text;
  return text.slice(0, node.start) + spelled(value, styleAt(text, node.start)) + text.slice(node.end);
}

/** The text without what stands at a path. */
export function dropValue(text: string, path: readonly string[]): string {
  if (blank(text)) return text;
  const object = find(text, path.slice(0, -1));
  const member = object && only(objectAt(object, path.slice(0, -1)), path.at(-1) ?? '');
  return object && member ? cut(text, object as ObjectNode, member) : text;
}

/** What stands at a path; undefined where nothing does. */
export function valueAt(text: string, path: readonly string[]): unknown {
  const node = blank(text) ? undefined : find(text, path);
  return node && plainOf(node);
}

function find(text: string, path: readonly string[]): Node | undefined {
  let node: Node | undefined = read(text);
  for (const [depth, name] of path.entries()) {
    node = node && only(objectAt(node, path.slice(0, depth)), name)?.value;
  }
  return node;
}

function objectAt(node: Node, path: readonly string[]): ObjectNode {
  if ('members' in node) return node;
  const where = path.length === 0 ? 'At its top' : `At ${path.join('.')}`;
  throw refused(`${where} stands something other than an object`);
}

function only({ members }: ObjectNode, name: string): Member | undefined {
  const [first, second] = members.filter((member) => member.name === name);
  if (second) throw refused(`It has ${name} twice`);
  return first;
}

function insert(text: string, object: ObjectNode, name: string, value: unknown): string {
  const style = styleAt(text, object.start);
  const inside = text.slice(object.start, object.end);
  const last = object.members.at(-1);
  const rest = text.slice(object.last, object.end - 1);
  if (last && !inside.includes('\n')) {
    const member = `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
    return spliced(text, object, last, ` ${member}`);
  }
  // Alone in a text of one line it would be the only thing that is not.
  if (!last && !text.trim().includes('\n') && object.start > text.search(/[^\s\uFEFF]/)) {
    return text.slice(0, object.last) + `${JSON.stringify(name)}: ${JSON.stringify(value)}` + text.slice(object.last);
  }
  const indent = last ? (indentOf(text, last.key.start) ?? style.indent + style.unit) : style.indent + style.unit;
  const member = `${style.line}${indent}${JSON.stringify(name)}: ${spelled(value, { ...style, indent })}`;
  if (last) return spliced(text, object, last, member);
  const close = rest.includes('\n') ? '' : style.line + style.indent;
  return text.slice(0, object.last) + member + close + text.slice(object.last);
}

/** The comma goes to the value it ends, the new member behind what is said about that value. */
function spliced(text: string, object: ObjectNode, last: Member, member: string): string {
  const before = text.slice(0, last.value.end);
  const between = text.slice(last.value.end, object.last);
  const comma = last.comma === undefined;
  return before + (comma ? ',' : '') + between + member + (comma ? '' : ',') + text.slice(object.last);
}

function cut(text: string, object: ObjectNode, member: Member): string {
  const at = object.members.indexOf(member);
  const before = object.members[at - 1];
  const blanks = /\s*$/.exec(text.slice(object.start + 1, member.key.start))?.[0].length ?? 0;
  const start = member.key.start - blanks;
  const end = member.comma === undefined ? member.value.end : member.comma + 1;
  // The last one's comma stands with the one before it.
  const comma = member.comma === undefined ? before?.comma : undefined;
  if (comma === undefined) return text.slice(0, start) + text.slice(end);
  return text.slice(0, comma) + text.slice(comma + 1, start) + text.slice(end);
}

interface Style {
  readonly line: string;
  /** Of the line that something stands in. */
  readonly indent: string;
  readonly unit: string;
}

function styleAt(text: string, position: number): Style {
  const indented = /\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
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

const plainOf = (node: Node): unknown =>
  'members' in node ? Object.fromEntries(node.members.map(({ name, value }) => [name, plainOf(value)])) : node.plain;

const blank = (text: string): boolean => /^[\s\uFEFF]*$/.test(text);

const refused = (what: string, position?: { text: string; at: number }): Failure => {
  const where = position && ` (line ${position.text.slice(0, position.at).split('\n').length})`;
  return new Failure('invalid_input', `${what}${where ?? ''}, so it is left as it is; mend the file, and try again.`);
};

function read(text: string): Node {
  return new Reader(text).whole();
}

class Reader {
  readonly #text: string;
  #at: number;
  #deep = 0;

  constructor(text: string) {
    this.#text = text;
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
    if (char === '{') return this.#nest(() => this.#object());
    if (char === '[') return this.#nest(() => this.#array());
    if (char === '"') {
      const span = this.#string();
      return { ...span, plain: this.#parsed(span) };
    }
    const word = this.#match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y);
    if (!word) throw this.#broken();
    return { ...word, plain: this.#parsed(word) };
  }

  #nest<T>(job: () => T): T {
    if ((this.#deep += 1) > DEEPEST) throw refused(`It nests deeper than ${DEEPEST} levels`);
    const done = job();
    this.#deep -= 1;
    return done;
  }

  #object(): ObjectNode {
    const start = this.#at;
    this.#at += 1;
    let last = this.#skip();
    const members: Member[] = [];
    while (this.#text[this.#at] !== '}') {
      const key = this.#string();
      this.#skip();
      this.#expect(':');
      this.#skip();
      const value = this.#value();
      last = this.#skip();
      const comma = this.#text[this.#at] === ',' ? this.#at : undefined;
      if (comma !== undefined) {
        this.#at += 1;
        last = this.#skip();
      } else if (this.#text[this.#at] !== '}') throw this.#broken();
      members.push({ name: String(this.#parsed(key)), key, value, comma });
    }
    this.#at += 1;
    return { start, end: this.#at, members, last };
  }

  #array(): Node {
    const start = this.#at;
    this.#at += 1;
    this.#skip();
    const plain: unknown[] = [];
    while (this.#text[this.#at] !== ']') {
      plain.push(plainOf(this.#value()));
      this.#skip();
      if (this.#text[this.#at] === ',') {
        this.#at += 1;
        this.#skip();
      } else if (this.#text[this.#at] !== ']') throw this.#broken();
    }
    this.#at += 1;
    return { start, end: this.#at, plain };
  }

  #string(): Span {
    const span = this.#match(/"[^"\\\n]*(?:\\.[^"\\\n]*)*"/y);
    if (!span) throw this.#broken();
    return span;
  }

  #parsed({ start, end }: Span): unknown {
    try {
      return JSON.parse(this.#text.slice(start, end));
    } catch {
      throw this.#broken(start);
    }
  }

  #match(pattern: RegExp): Span | undefined {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return undefined;
    const start = this.#at;
    this.#at = pattern.lastIndex;
    return { start, end: this.#at };
  }

  #expect(char: string): void {
    if (this.#text[this.#at] !== char) throw this.#broken();
    this.#at += 1;
  }

  /** Over blanks and comments; the end of the last thing that was not blank. */
  #skip(): number {
    let last = this.#at;
    for (;;) {
      this.#match(/[ \t\r\n]+/y);
      const comment = this.#match(/\/\/[^\r\n]*|\/\*[^]*?\*\//y);
      if (!comment) return last;
      last = comment.end;
    }
  }

  #broken(at = this.#at): Failure {
    return refused('It is not JSON', { text: this.#text, at });
  }
}
