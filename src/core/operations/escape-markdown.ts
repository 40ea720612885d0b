/** Matches every character that any Markdown reader treats as a line break, and every control character except the tab. */
const LINE_BREAK = /(\r\n|[[\p{Cc}\p{Zl}\p{Zp}]--[\t]])/v;

/**
 * Matches a character that ends a line or begins a heading or a fence. Text without such a character is a single line that needs
 * no backslash.
 */
const SPECIAL = /[[#＃﹟`~\p{Cc}\p{Zl}\p{Zp}]--[\t]]/v;

/** Characters that can precede a heading: indentation, quote and list markers, and invisible characters. */
const PREFIX = String.raw`[\t\p{Zs}\p{Cc}\p{Default_Ignorable_Code_Point}>*+.)\d-]*`;
const BLANK = String.raw`[\t\p{Zs}\p{Cc}\p{Default_Ignorable_Code_Point}]`;

/**
 * Matches the start of a heading. `# x` is a heading and `#x` is a tag. Some readers also accept two or more `#` without a space
 * as a heading.
 */
const ATX = new RegExp(String.raw`^(${PREFIX})(?=[#＃﹟]{2}|[#＃﹟](?:${BLANK}|$))`, 'u');
/** Matches a line that turns the line above into a heading, if the line above has text. */
const UNDERLINE = new RegExp(String.raw`^((?:${BLANK}|>)*)(?=(?:=+|-+)${BLANK}*$)`, 'u');
const FENCE = new RegExp(`^(${PREFIX})(?=\`{3}|~{3})`, 'u');
const EMPTY = /^[ \t>]*$/;

const PLAIN_FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/**
 * Escapes the text of a fact for a Markdown document of Helmdeck Memory. Adds a backslash before every line that could be read as
 * a heading. Does the same before code fences if any of them is not closed, because an open fence turns all following text into
 * code. Leaves every other character unchanged, so that a model reads the stored text. Leaves HTML unchanged too: the document's
 * headings start with `##`, so `<h2>` cannot imitate them.
 */
export function escapeMarkdown(text: string): string {
  if (!SPECIAL.test(text)) return text;
  const parts = text.split(LINE_BREAK);
  const lines = parts.filter((_, index) => index % 2 === 0);
  const fencesClosed = areFencesClosed(lines);
  return parts
    .map((part, index) => {
      if (index % 2 === 1) return part;
      const above = parts[index - 2] ?? '';
      if (ATX.test(part)) return part.replace(ATX, '$1\\');
      if (!EMPTY.test(above) && UNDERLINE.test(part)) return part.replace(UNDERLINE, '$1\\');
      return fencesClosed ? part : part.replace(FENCE, '$1\\');
    })
    .join('');
}

/** Whether every opening code fence is closed by the next fence, in a way that all Markdown readers accept. */
function areFencesClosed(lines: readonly string[]): boolean {
  let open: string | undefined;
  for (const line of lines) {
    if (!FENCE.test(line)) continue;
    const [, fence = '', info = ''] = PLAIN_FENCE.exec(line) ?? [];
    if (fence === '') return false;
    if (open === undefined) open = fence;
    else if (fence === open && info.trim() === '') open = undefined;
    else return false;
  }
  return open === undefined;
}
