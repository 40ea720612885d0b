import { linesIn, hasWords } from './import-entry.ts';

export interface Block {
  /** The first line of the block, counted from 1. */
  readonly line: number;
  /**
   * The kind of the block. `item` is a list item with the lines that are indented below it. `property` is a line of the front
   * matter.
   */
  readonly kind: 'heading' | 'item' | 'paragraph' | 'code' | 'comment' | 'property';
  /** The text of the block without its Markdown markers. */
  readonly text: string;
  /** The level of a heading, starting at 1; 0 for other blocks. */
  readonly level: number;
}

interface OpenBlock {
  readonly line: number;
  readonly kind: Block['kind'];
  readonly lines: string[];
  /** Number of characters by which the line with the list marker is indented. */
  readonly indent: number;
  /**
   * Number of characters by which the first line below an item is indented. The same indentation is removed from the other lines
   * of that item.
   */
  bodyIndent?: number;
}

/** Splits Markdown into blocks. Omits lines without words, such as horizontal rules. */
export function blocksOf(text: string): Block[] {
  const lines = linesIn(text);
  const blocks: Block[] = [];
  let open: OpenBlock | undefined;
  let blank = false;

  const close = (): void => {
    if (open) add(open.line, open.kind, open.lines.join('\n'));
    open = undefined;
  };
  const add = (line: number, kind: Block['kind'], body: string, level = 0): void => {
    const trimmed = kind === 'code' ? body.trimEnd() : body.trim();
    if (hasWords(trimmed)) blocks.push({ line, kind, text: trimmed, level });
  };
  const begin = (line: number, kind: Block['kind'], first: string, indent = 0): void => {
    close();
    open = { line, kind, lines: [first], indent };
  };

  const top = propertiesEnd(lines);
  for (let at = 1; at < top; at += 1) add(at + 1, 'property', lines[at] ?? '');

  for (let at = top === 0 ? 0 : top + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const indent = indentOf(line);
    const trimmed = line.trim();
    const inItem: OpenBlock | undefined = open?.kind === 'item' && indent > open.indent ? open : undefined;
    const fence = /^(`{3,}|~{3,})/.exec(trimmed)?.[1];
    if (trimmed === '') blank = true;
    else if (fence !== undefined) {
      const end = endOf(lines, at, (later) => closes(later.trim(), fence));
      const code = lines.slice(at, end + 1).map((part) => (inItem ? withoutBodyIndent(inItem, part) : part));
      const introduction: OpenBlock | undefined = inItem ?? (open?.lines.at(-1)?.trimEnd().endsWith(':') ? open : undefined);
      if (introduction) introduction.lines.push(...code);
      else {
        close();
        add(at + 1, 'code', code.join('\n'));
      }
      at = end;
    } else if (inItem) inItem.lines.push(`${blank ? '\n' : ''}${withoutBodyIndent(inItem, line)}`);
    else if (trimmed.startsWith('<!--')) {
      close();
      const end = endOf(lines, at - 1, (later) => later.includes('-->'));
      add(at + 1, 'comment', lines.slice(at, end + 1).join('\n'));
      at = end;
    } else if (headingLevel(trimmed) > 0) {
      close();
      add(at + 1, 'heading', trimmed.replace(/^#+/, '').replace(/(?:\s#+)$/, ''), headingLevel(trimmed));
    } else if (isUnderline(trimmed) && open?.kind === 'paragraph' && open.lines.length === 1 && !blank) {
      add(open.line, 'heading', open.lines[0] ?? '', trimmed.startsWith('=') ? 1 : 2);
      open = undefined;
    } else if (isRule(trimmed)) close();
    else if (listItemText(line) !== undefined) begin(at + 1, 'item', listItemText(line) ?? '', indent);
    else if (open && !blank && open.kind !== 'code') open.lines.push(line.trimEnd());
    else begin(at + 1, 'paragraph', line.trimEnd());
    if (trimmed !== '') blank = false;
  }
  close();
  return blocks;
}

/** Returns the index of the last line of the front matter, or 0 if there is no front matter. */
function propertiesEnd(lines: readonly string[]): number {
  if (lines[0]?.trimEnd() !== '---') return 0;
  const end = Math.max(0, lines.indexOf('---', 1));
  // If a line between the two `---` is not YAML, these lines are not front matter.
  return lines.slice(1, end).every((line) => SETTING.test(line)) ? end : 0;
}

/** Matches a line of YAML: a name with a value, an indented line or list item, a comment, or an empty line. */
const SETTING = /^(?:[\w"'][^:]{0,80}:(?:\s|$)|\s|- |#|$)/;

/** Returns the index of the first line after `at` that ends the block, or the index of the last line. */
function endOf(lines: readonly string[], at: number, ends: (line: string) => boolean): number {
  for (let end = at + 1; end < lines.length; end += 1) if (ends(lines[end] ?? '')) return end;
  return lines.length - 1;
}

const closes = (line: string, fence: string): boolean => line.startsWith(fence) && line === fence.charAt(0).repeat(line.length);

const indentOf = (line: string): number => line.length - line.trimStart().length;

function withoutBodyIndent(item: OpenBlock, line: string): string {
  item.bodyIndent ??= indentOf(line);
  return line.slice(Math.min(indentOf(line), item.bodyIndent));
}

const headingLevel = (line: string): number => /^(#{1,6})(?:\s|$)/.exec(line)?.[1]?.length ?? 0;

const isUnderline = (line: string): boolean => line === '='.repeat(line.length) || line === '-'.repeat(line.length);

const isRule = (line: string): boolean => /^(?:[-\s]+|[*\s]+|[_\s]+)$/.test(line) && line.replaceAll(/\s/g, '').length >= 3;

export const listItemText = (line: string): string | undefined => /^\s*(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)$/.exec(line)?.[1];
