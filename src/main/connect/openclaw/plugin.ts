import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from '../launch.ts';

/** The plugin's id, folder name, and name in OpenClaw's configuration. */
export const PLUGIN = 'helmdeck-memory';

const FILES = ['index.js', 'openclaw.plugin.json', 'package.json'];

/** OpenClaw copies the plugin from this folder and cannot read an asar archive. */
const pluginFolder = (): string => bundled('openclaw').replace(/\bapp\.asar\b(?!\.)/, 'app.asar.unpacked');

/** The folder of OpenClaw's copy. */
export const pluginIn = (state: string): string => join(state, 'extensions', PLUGIN);

/** Whether OpenClaw has this version of the plugin, another version, or none. */
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

/** Installs without a prompt, because the owner has confirmed already. OpenClaw 2026.7 and older reject the consent option. */
export const installArgs = (version = ''): readonly string[] => {
  const [year = 0, month = 0] = version.split('.').map(Number);
  const consents = version === '' || year > 2026 || (year === 2026 && month >= 8);
  return ['plugins', 'install', pluginFolder(), '--force', ...(consents ? ['--accept-capabilities'] : [])];
};
