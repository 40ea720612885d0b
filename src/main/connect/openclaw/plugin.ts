import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from '../launch.ts';

/** Its id, its folder's name, and its name in OpenClaw's configuration. */
export const PLUGIN = 'helmdeck-memory';

const FILES = ['index.js', 'openclaw.plugin.json', 'package.json'];

/** OpenClaw copies it from there, and knows nothing of archives. */
const pluginFolder = (): string => bundled('openclaw').replace(/\bapp\.asar\b(?!\.)/, 'app.asar.unpacked');

/** Where OpenClaw keeps its copy. */
export const pluginIn = (state: string): string => join(state, 'extensions', PLUGIN);

/** Whether OpenClaw has the plugin that came with this program, another version of it, or none. */
export function installedPlugin(state: string): 'same' | 'other' | 'none' {
  const copy = pluginIn(state);
  const texts = FILES.map((file) => [textOf(join(copy, file)), textOf(join(pluginFolder(), file))]);
  if (texts.every(([theirs]) => theirs === undefined)) return 'none';
  return texts.every(([theirs, ours]) => theirs === ours) ? 'same' : 'other';
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** What installs it without asking: whoever connects has been asked. Versions up to 2026.7 do not know the consent, and refuse the word. */
export const installArgs = (version = ''): readonly string[] => {
  const [year = 0, month = 0] = version.split('.').map(Number);
  const consents = version === '' || year > 2026 || (year === 2026 && month >= 8);
  return ['plugins', 'install', pluginFolder(), '--force', ...(consents ? ['--accept-capabilities'] : [])];
};
