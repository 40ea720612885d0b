import { linesIn, hasWords } from './import-entry.ts';

/** A part of a Markdown text that belongs together. */
export interface Block {
  /** Where it begins, from 1. */
  readonly line: number;
  /** `item`: of a list, with all that is indented below it. `property`: a line of the block of settings at the top. */
  readonly kind: 'heading' | 'item' | 'paragraph' | 'code' | 'comment' | 'property';
  /** Without the signs that say what it is. */
  readonly text: string;
  /** Of a heading, from 1. */
  readonly level: number;
}

interface OpenBlock {
  readonly line: number;
  readonly what: Block['kind'];
  readonly lines: string[];
  /** How far an item's own lines are indented at least. */
  readonly indent: number;
  /** How far the first of them is, which the others go by. */
  inner?: number;
}

/** Markdown line by line, as far as it tells what belongs together. Signs that stand alone, such as rules, make no block. */
export function blocksOf(text: string): Block[] {
  const lines = linesIn(text);
  const blocks: Block[] = [];
  let open: OpenBlock | undefined;
  let blank = false;

  const close = (): void => {
    if (open) add(open.line, open.what, open.lines.join('\n'));
    open = undefined;
  };
  const add = (line: number, what: Block['kind'], body: string, level = 0): void => {
    const said = what === 'code' ? body.trimEnd() : body.trim();
    if (hasWords(said)) blocks.push({ line, kind: what, text: said, level });
  };
  const begin = (line: number, what: Block['kind'], first: string, indent = 0): void => {
    close();
    open = { line, what, lines: [first], indent };
  };

  const top = propertiesEnd(lines);
  for (let at = 1; at < top; at += 1) add(at + 1, 'property', lines[at] ?? '');

  for (let at = top === 0 ? 0 : top + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const indent = indentOf(line);
    const said = line.trim();
    const inItem: OpenBlock | undefined = open?.what === 'item' && indent > open.indent ? open : undefined;
    const fence = /^(`{3,}|~{3,})/.exec(said)?.[1];
    if (said === '') blank = true;
    else if (fence !== undefined) {
      const end = endOf(lines, at, (later) => closes(later.trim(), fence));
      const code = lines.slice(at, end + 1).map((part) => (inItem ? within(inItem, part) : part));
      const introduced: OpenBlock | undefined = inItem ?? (open?.lines.at(-1)?.trimEnd().endsWith(':') ? open : undefined);
      if (introduced) introduced.lines.push(...code);
      else {
        close();
        add(at + 1, 'code', code.join('\n'));
      }
      at = end;
    } else if (inItem) inItem.lines.push(`${blank ? '\n' : ''}${within(inItem, line)}`);
    else if (said.startsWith('<!--')) {
      close();
      const end = endOf(lines, at - 1, (later) => later.includes('-->'));
      add(at + 1, 'comment', lines.slice(at, end + 1).join('\n'));
      at = end;
    } else if (headingLevel(said) > 0) {
      close();
      add(at + 1, 'heading', said.replace(/^#+/, '').replace(/(?:\s#+)$/, ''), headingLevel(said));
    } else if (isUnderline(said) && open?.what === 'paragraph' && open.lines.length === 1 && !blank) {
      add(open.line, 'heading', open.lines[0] ?? '', said.startsWith('=') ? 1 : 2);
      open = undefined;
    } else if (isRule(said)) close();
    else if (listItemText(line) !== undefined) begin(at + 1, 'item', listItemText(line) ?? '', indent);
    else if (open && !blank && open.what !== 'code') open.lines.push(line.trimEnd());
    else begin(at + 1, 'paragraph', line.trimEnd());
    if (said !== '') blank = false;
  }
  close();
  return blocks;
}

/** The index of the line that ends the settings at the top, or 0 without any. */
function propertiesEnd(lines: readonly string[]): number {
  if (lines[0]?.trimEnd() !== '---') return 0;
  const end = Math.max(0, lines.indexOf('---', 1));
  // Else it is a rule, and another one further down.
  return lines.slice(1, end).every((line) => SETTING.test(line)) ? end : 0;
}

/** As YAML has them: a name with its value, what is indented or listed below it, a comment, or nothing. */
const SETTING = /^(?:[\w"'][^:]{0,80}:(?:\s|$)|\s|- |#|$)/;

/** Of the first line after this one that ends what was begun, or of the last there is. */
function endOf(lines: readonly string[], at: number, ends: (line: string) => boolean): number {
  for (let end = at + 1; end < lines.length; end += 1) if (ends(lines[end] ?? '')) return end;
  return lines.length - 1;
}

const closes = (line: string, fence: string): boolean => line.startsWith(fence) && line === fence.charAt(0).repeat(line.length);

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** A line of an item as it stands there, without the indentation that they all have. */
function within(item: OpenBlock, line: string): string {
  item.inner ??= indentOf(line);
  return line.slice(Math.min(indentOf(line), item.inner));
}

const headingLevel = (line: string): number => /^(#{1,6})(?:\s|$)/.exec(line)?.[1]?.length ?? 0;

const isUnderline = (line: string): boolean => line === '='.repeat(line.length) || line === '-'.repeat(line.length);

const isRule = (line: string): boolean => /^(?:[-\s]+|[*\s]+|[_\s]+)$/.test(line) && line.replaceAll(/\s/g, '').length >= 3;

/** What an item of a list says, if the line begins one. */
export const listItemText = (line: string): string | undefined => /^\s*(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)$/.exec(line)?.[1];
