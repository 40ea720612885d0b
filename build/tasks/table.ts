/** Renders a Markdown table. Escapes `<` outside code, because Markdown would treat it as HTML. */
export const renderTable = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => visible(cell).replaceAll('|', String.raw`\|`)).join(' | ')} |`)
    .join('\n');

const visible = (text: string): string => text.replace(/`[^`]*`|</g, (part) => (part === '<' ? '&lt;' : part));
