import { readFileSync, writeFileSync } from 'node:fs';
import { renderApi } from './api.ts';
import { renderCommands } from './commands.ts';
import { renderDependencies } from './dependencies.ts';
import { renderEffects } from './effects.ts';
import { renderSchema } from './schema.ts';

const marked = /(?<=<!-- picture.*-->\n).*(?=<!-- end of picture -->)/s;

async function architecture(): Promise<string> {
  const text = readFileSync('docs/architecture.md', 'utf8');
  if (!marked.test(text)) throw new Error('docs/architecture.md has no marker comments around its picture. Restore them.');
  const drawn = `\`\`\`mermaid\n${await renderDependencies()}\n\`\`\`\n`;
  return text.replace(marked, () => drawn);
}

/** The generated documents and their generators. */
export const documents: Record<string, () => string | Promise<string>> = {
  'docs/api.md': renderApi,
  'docs/architecture.md': architecture,
  'docs/commands.md': renderCommands,
  'docs/effects.md': renderEffects,
  'docs/schema.sql': renderSchema,
};

if (import.meta.main) {
  for (const [path, write] of Object.entries(documents)) writeFileSync(path, await write());
}
