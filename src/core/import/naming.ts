import { hash } from 'node:crypto';
import { CATEGORY, RESERVED_CATEGORIES } from '../../contract/categories.ts';
import type { ImportSource } from '../../contract/import-preview.ts';
import { TAGS } from '../../contract/limits.ts';
import { foldCase } from '../../contract/schema.ts';
import type { ImportEntry } from './import-entry.ts';

/** Maximum characters of one part of a key. A whole key stays far below the limit of a key. */
const PART_CHARACTERS = 48;
/** Maximum characters of a text that are used for a name. */
const MAX_READ = 512;

/**
 * Converts a text to letters and digits of any script, joined by hyphens and truncated between words. A slug needs no escaping in
 * URLs or shells.
 */
function slug(text: string, most: number = PART_CHARACTERS): string {
  const words = text
    .slice(0, MAX_READ)
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

/** Removes differences of spacing, letter case and final punctuation. Texts with the same result count as equal. */
export const comparableText = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim().replace(/[.!]$/, '');

/**
 * Returns the key of an imported fact. The key depends only on the text, so importing a file again results in the same keys, even
 * if its entries have moved.
 */
export function importKey(source: ImportSource, { keyParts, value }: ImportEntry): string {
  const parts = keyParts.map((part) => slug(part)).filter((part) => part !== '');
  return `${[source, ...parts].join('/')}${parts.length > 0 ? '-' : '/'}${hash('sha256', comparableText(value)).slice(0, 8)}`;
}

/**
 * Returns the valid category that is closest to this name. Returns undefined if there is no such category, or if that category is
 * reserved.
 */
export function toCategory(name: string): string | undefined {
  const category = foldCase(name.slice(0, MAX_READ))
    .replaceAll(/[^a-z0-9_.-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
  return CATEGORY.pattern.test(category) && !RESERVED_CATEGORIES.has(category) ? category : undefined;
}

export const toTags = (names: readonly string[]): string[] => [
  ...new Set(names.map((name) => slug(name, TAGS.characters)).filter((tag) => tag !== '')),
];
