import { findSecret } from '../../core/operations/secret-guard.ts';

const MAX_CHARACTERS = 300;

/** Makes a text from a pack's author safe to show: one line, no control characters, no credentials, limited length. */
export function toSafeLine(text: string): string {
  if (findSecret(text)) return 'the error message looks like a credential, so it is not shown.';
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line || 'no reason was given.';
}
