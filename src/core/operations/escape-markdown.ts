/** Every character that some reader takes for the end of a line, and every other control character but the tab. */
const LINE_BREAK = /(\r\n|[[\p{Cc}\p{Zl}\p{Zp}]--[\t]])/v;

/** Before a heading: indentation, marks of quotes and lists, and characters that leave no ink. */
const PREFIX = String.raw`[\t\p{Zs}\p{Cc}\p{Default_Ignorable_Code_Point}>*+.)\d-]*`;
const BLANK = String.raw`[\t\p{Zs}\p{Cc}\p{Default_Ignorable_Code_Point}]`;

/** `# x` is a heading and `#x` is a tag; two and more are taken for a heading without a blank, too. */
const ATX = new RegExp(String.raw`^(${PREFIX})(?=[#＃﹟]{2}|[#＃﹟](?:${BLANK}|$))`, 'u');
/** A heading, if the line above has text. */
const UNDERLINE = new RegExp(String.raw`^((?:${BLANK}|>)*)(?=(?:=+|-+)${BLANK}*$)`, 'u');
const FENCE = new RegExp(`^(${PREFIX})(?=\`{3}|~{3})`, 'u');
const EMPTY = /^[ \t>]*$/;

const PLAIN_FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/**
 * Text of a fact within a markdown document of ours. A backslash goes before every line that could pass for one of our headings,
 * and before code fences that would swallow what follows. Every other character stays: a model must read what was stored.
 *
 * HTML stays too. A heading of ours begins with `##`, for a model as for a program that splits documents, and `<h2>` does not.
 */
export function escapeMarkdown(text: string): string {
  const parts = text.split(LINE_BREAK);
  const lines = parts.filter((_, index) => index % 2 === 0);
  const fencesPair = pairUp(lines);
  return parts
    .map((part, index) => {
      if (index % 2 === 1) return part;
      const above = parts[index - 2] ?? '';
      if (ATX.test(part)) return part.replace(ATX, '$1\\');
      if (!EMPTY.test(above) && UNDERLINE.test(part)) return part.replace(UNDERLINE, '$1\\');
      return fencesPair ? part : part.replace(FENCE, '$1\\');
    })
    .join('');
}

/** Whether each fence is closed by the next, in a way that all readers of markdown agree on. */
function pairUp(lines: readonly string[]): boolean {
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
