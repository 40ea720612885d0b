import { readFileSync, writeFileSync } from 'node:fs';
import { api } from './api.ts';
import { commands } from './commands.ts';
import { effects } from './effects.ts';
import { picture } from './picture.ts';
import { schema } from './schema.ts';

const marked = /(?<=<!-- picture.*-->\n).*(?=<!-- end of picture -->)/s;

async function architecture(): Promise<string> {
  const text = readFileSync('docs/architecture.md', 'utf8');
  if (!marked.test(text)) throw new Error('docs/architecture.md has lost the marks round its picture.');
  const drawn = `\`\`\`mermaid\n${await picture()}\n\`\`\`\n`;
  return text.replace(marked, () => drawn);
}

/** Documents that the code knows best, and how each is written. */
export const documents: Record<string, () => string | Promise<string>> = {
  'docs/api.md': api,
  'docs/architecture.md': architecture,
  'docs/commands.md': commands,
  'docs/effects.md': effects,
  'docs/schema.sql': schema,
};

if (import.meta.main) {
  for (const [path, write] of Object.entries(documents)) writeFileSync(path, await write());
}
