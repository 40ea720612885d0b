import { Failure } from '../../contract/failure.ts';
import { IMPORT_TEXT } from '../../contract/limits.ts';

/** An entry from another program's memory that can become a fact. */
export interface ImportEntry {
  /** The first line of the entry, counted from 1. */
  readonly line: number;
  readonly value: string;
  readonly keyParts: readonly string[];
  readonly category?: string | undefined;
  readonly tags: readonly string[];
}

/** A part of the text that cannot become a fact, with the reason. */
export interface UnusableEntry {
  readonly line: number;
  readonly text: string;
  readonly message: string;
}

/** The result of reading a text. Together, the two lists contain the whole text, except for spaces and punctuation. */
interface Reading {
  readonly entries: readonly ImportEntry[];
  readonly unusable: readonly UnusableEntry[];
}

/**
 * Reads the text of another program's memory. Accepts any text, throws only if the text has too many entries, and takes time
 * linear in the length of the text.
 */
export type SourceReader = (text: string) => Reading;

export const linesIn = (text: string): string[] => text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);

/** Whether a text has other characters than spaces, punctuation and symbols. */
export const hasWords = (text: string): boolean => /[^\s\p{P}\p{Sm}\p{Sk}\p{Cc}\p{Cf}]/u.test(text);

/**
 * Puts the name of the subject before the text, unless the text contains the name, because the fact must be clear without its
 * source.
 */
export function withSubject(name: string, text: string): string {
  if (!hasWords(name)) return text;
  const pattern = new RegExp(String.raw`(?<![\p{L}\p{N}])${RegExp.escape(name)}(?![\p{L}\p{N}])`, 'iu');
  return pattern.test(text) ? text : `${name}: ${text}`;
}

/** Throws if a text has too many entries. Call this before reading the entries. */
export function limitEntries(entries: number): void {
  if (entries <= IMPORT_TEXT.entries) return;
  throw new Failure(
    'invalid_input',
    `The text has more than ${IMPORT_TEXT.entries} entries; split it, and import the parts one after the other.`,
  );
}
