import type { Mark } from '../../contract/fact.ts';

/**
 * Escapes control characters and bidirectional characters, except line breaks and tabs. Agents can store such characters,
 * and the terminal would then show misleading text.
 */
export const escapeControls = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );

/** Returns JSON on one line, with control and bidirectional characters escaped as \uXXXX. */
export const jsonText = (value: unknown): string => escaped(JSON.stringify(value));

export const prettyJson = (value: unknown): string => escaped(JSON.stringify(value, null, 2));

const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const graphemes = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303f\uff01-\uff60]/u;

/** Returns the number of terminal columns that the text needs. */
const widthOf = (text: string): number => {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
};

/** Aligns cells in columns, separated by two spaces, without trailing spaces. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, widthOf(cell));
  return rows.map((row) =>
    row
      .map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd(),
  );
}

export const indent = (text: string, by = '  '): string[] => text.split('\n').map((line) => (line === '' ? '' : by + line));

/** Wraps text between words. Does not split a word that is longer than `width`. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Formats a number with its noun, such as "1 fact" or "2 facts". */
export const formatCount = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

const REASONS: Readonly<Record<Mark, string>> = {
  instructions: 'it gives instructions to the model that reads it',
  hidden: 'it has hidden or misleading characters',
  framing: 'it looks like a message of the system or of another role',
};

/** Returns a warning about suspicious text, or nothing for ordinary text. */
export const formatMark = (mark: Mark | undefined): string[] => (mark === undefined ? [] : [`Suspicious: ${REASONS[mark]}`]);

/** Names the client that wrote an entry. If the client ran a pipeline of another client, names the other client too. */
export const formatWriter = ({ client, defined_by: definer }: { client: string; defined_by?: string | undefined }): string =>
  escapeControls(definer === undefined ? client : `${client}, with a pipeline of ${definer}`);

export const formatEntries = (count: number): string => formatCount(count, 'entry', 'entries');

/** Decodes UTF-8 text and drops a byte order mark. Returns undefined if the bytes are not UTF-8. */
export function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
