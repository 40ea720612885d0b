import { readFileSync, writeFileSync } from 'node:fs';
import { type SettingName, settingOf, SETTINGS } from '../../src/main/config/settings-table.ts';
import { renderApi } from './api.ts';
import { renderCommands } from './commands.ts';
import { renderDependencies } from './dependencies.ts';
import { renderEffects } from './effects.ts';
import { renderSchema } from './schema.ts';
import { renderTable } from './table.ts';

/** Replaces the text between the marker comments `<!-- name: … -->` and `<!-- end of name -->` of a page. */
function replaceMarked(path: string, name: string, text: string): string {
  const page = readFileSync(path, 'utf8');
  const marked = new RegExp(`(?<=<!-- ${name}.*-->\n).*(?=<!-- end of ${name} -->)`, 's');
  if (!marked.test(page)) throw new Error(`${path} has no marker comments around its ${name}. Restore them.`);
  return page.replace(marked, () => text);
}

const architecture = async (): Promise<string> =>
  replaceMarked('docs/architecture.md', 'picture', `\`\`\`mermaid\n${await renderDependencies()}\n\`\`\`\n`);

function settings(): string {
  const rows = (Object.keys(SETTINGS) as SettingName[]).map((name) => {
    const { help, default: usual, whenUnset = '', label } = settingOf(name);
    return [`\`${name}\`${label !== undefined ? ' \\*' : ''}`, help, usual === undefined ? whenUnset : `\`${usual}\``];
  });
  return replaceMarked('docs/settings.md', 'settings', `${renderTable(['setting', 'what it sets', 'default'], rows)}\n`);
}

/** The generated documents and their generators. */
export const documents: Record<string, () => string | Promise<string>> = {
  'docs/api.md': renderApi,
  'docs/architecture.md': architecture,
  'docs/commands.md': renderCommands,
  'docs/effects.md': renderEffects,
  'docs/schema.sql': renderSchema,
  'docs/settings.md': settings,
};

if (import.meta.main) {
  for (const [path, write] of Object.entries(documents)) writeFileSync(path, await write());
}
