/** Rows as Markdown writes them; outside of code, what looks like HTML would not be seen. */
export const renderTable = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => visible(cell).replaceAll('|', String.raw`\|`)).join(' | ')} |`)
    .join('\n');

const visible = (text: string): string => text.replace(/`[^`]*`|</g, (part) => (part === '<' ? '&lt;' : part));
