import { Failure } from '../../contract/failure.ts';
import { IMPORT_TEXT } from '../../contract/limits.ts';

/** An entry of another memory that can become a fact. */
export interface ImportEntry {
  /** Where it begins, from 1. */
  readonly line: number;
  readonly value: string;
  /** What its key is made from: texts that become its parts. */
  readonly named: readonly string[];
  readonly category?: string | undefined;
  readonly tags: readonly string[];
}

/** An entry that can not, and why. */
export interface UnusableEntry {
  readonly line: number;
  readonly text: string;
  readonly message: string;
}

/** All that stood in a text: nothing of it is in neither list but blanks and signs. */
interface Reading {
  readonly entries: readonly ImportEntry[];
  readonly unusable: readonly UnusableEntry[];
}

/**
 * Reads what another program wrote. Whatever it is given, it answers or says that it is too much, in
 * time that grows with the text and no faster.
 */
export type SourceReader = (text: string) => Reading;

export const linesIn = (text: string): string[] => text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);

/** Signs alone say nothing that could be lost. */
export const hasWords = (text: string): boolean => /[^\s\p{P}\p{Sm}\p{Sk}\p{Cc}\p{Cf}]/u.test(text);

/** What was said of somebody must say of whom, once it stands alone. */
export function withSubject(name: string, text: string): string {
  if (!hasWords(name)) return text;
  const named = new RegExp(String.raw`(?<![\p{L}\p{N}])${RegExp.escape(name)}(?![\p{L}\p{N}])`, 'iu');
  return named.test(text) ? text : `${name}: ${text}`;
}

/** Said before the work is done, where a glance tells how many there are. */
export function limitEntries(entries: number): void {
  if (entries <= IMPORT_TEXT.entries) return;
  throw new Failure(
    'invalid_input',
    `It has more than ${IMPORT_TEXT.entries} entries; split it, and bring the parts one after the other.`,
  );
}
