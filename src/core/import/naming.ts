import { hash } from 'node:crypto';
import type { ImportSource } from '../../contract/import-preview.ts';
import { CATEGORY, RESERVED_CATEGORIES, TAGS } from '../../contract/limits.ts';
import { foldCase } from '../../contract/schema.ts';
import type { ImportEntry } from './import-entry.ts';

/** Letters that one part of a key shows: enough to know it again, and a whole key stays far below its limit. */
const SHOWN = 48;
/** A word longer than this is no name that anybody reads, and is not looked through for one. */
const LOOKED_AT = 512;

/** Letters and digits of any script, joined by hyphens and cut between words. Nothing of it needs to be escaped anywhere. */
function slug(text: string, most: number = SHOWN): string {
  const words = text
    .slice(0, LOOKED_AT)
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}]+/gu, '-')
    .replaceAll(/^[-\p{M}]+|-$/gu, '');
  const letters = Array.from(words);
  if (letters.length <= most) return words.normalize('NFC');
  const cut = letters.slice(0, most).join('');
  const end = letters[most] === '-' ? -1 : cut.lastIndexOf('-');
  return (end > most / 2 ? cut.slice(0, end) : cut).normalize('NFC');
}

/** What two texts that say the same have in common: how they are spaced, capitalised and ended is set aside. */
export const comparableText = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim().replace(/[.!]$/, '');

/** The text alone decides, so the same file read again names the same facts, wherever in it they stand. */
export function importKey(source: ImportSource, { named, value }: ImportEntry): string {
  const parts = named.map((part) => slug(part)).filter((part) => part !== '');
  return `${[source, ...parts].join('/')}${parts.length > 0 ? '-' : '/'}${hash('sha256', comparableText(value)).slice(0, 8)}`;
}

/** A category as near to this name as one may be; none if it would be the engine's. */
export function toCategory(name: string): string | undefined {
  const category = foldCase(name.slice(0, LOOKED_AT))
    .replaceAll(/[^a-z0-9_.-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
  return CATEGORY.pattern.test(category) && !RESERVED_CATEGORIES.has(category) ? category : undefined;
}

/** Names as tags, as many as a fact may have. */
export const toTags = (names: readonly string[]): string[] => [
  ...new Set(names.map((name) => slug(name, TAGS.characters)).filter((tag) => tag !== '')),
];
