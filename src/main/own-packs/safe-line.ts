import { findSecret } from '../../core/operations/secret-guard.ts';

const MAX_CHARACTERS = 300;

/** Makes an author's text safe to show: one line, no control characters, no credentials, limited in length. */
export function toSafeLine(text: string): string {
  if (findSecret(text)) return 'the error text looks like a credential and is not shown.';
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line || 'it gave no reason.';
}
