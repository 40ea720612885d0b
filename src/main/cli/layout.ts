/**
 * Escapes control and bidirectional characters, except line breaks and tabs. Agents can store terminal control sequences,
 * which could make one text look like another.
 */
export const escapeControls = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );

/** JSON with such characters escaped as \uXXXX. */
export const jsonText = (value: unknown): string => escaped(JSON.stringify(value));

/** Indented JSON for people. */
export const prettyJson = (value: unknown): string => escaped(JSON.stringify(value, null, 2));

const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const graphemes = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303f\uff01-\uff60]/u;

/** Number of terminal columns that the text takes. */
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

/** Wraps between words. A word longer than the line is not split. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** "1 fact", "2 facts". */
export const formatCount = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

/** The client that wrote an entry, and the client whose pipeline it ran, if any. */
export const formatWriter = ({ client, defined_by: definer }: { client: string; defined_by?: string | undefined }): string =>
  escapeControls(definer === undefined ? client : `${client} by a pipeline of ${definer}`);

export const formatEntries = (count: number): string => formatCount(count, 'entry', 'entries');

/** Undefined if the bytes are not UTF-8. Drops a byte order mark, which some editors write. */
export function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
