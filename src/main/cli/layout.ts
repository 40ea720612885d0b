/**
 * What agents stored may hold codes that move the cursor, recolour or rename a terminal, or turn the direction of a line:
 * shown as they are they could make one text look like another. They are shown as what they are (line ends and tabs stay).
 */
export const escapeControls = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
      (unseen) => `\\u{${unseen.codePointAt(0)?.toString(16)}}`,
    );

/** The same for JSON, which has its own way to write them. */
export const jsonText = (value: unknown): string => escaped(JSON.stringify(value));

/** JSON for people, over several lines. */
export const prettyJson = (value: unknown): string => escaped(JSON.stringify(value, null, 2));

const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const graphemes = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303f\uff01-\uff60]/u;

/** Columns that a terminal takes for it. */
const widthOf = (text: string): number => {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
};

/** Rows in columns, two blanks between them, and none at the end of a line. */
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

/** Breaks between words; a word that is longer than the line stays whole. */
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

/** The client that wrote something, and the one whose pipeline made it write. */
export const formatWriter = ({ client, defined_by: definer }: { client: string; defined_by?: string | undefined }): string =>
  escapeControls(definer === undefined ? client : `${client} by a pipeline of ${definer}`);
