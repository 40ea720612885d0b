import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from '../launch.ts';

/** The plugin's id, folder name, and name in OpenClaw's configuration. */
export const PLUGIN = 'helmdeck-memory';

const FILES = ['index.js', 'openclaw.plugin.json', 'package.json'];

/**
 * Returns the folder from which OpenClaw copies our plugin. The folder must not be in an asar archive, because OpenClaw cannot
 * read such an archive.
 */
const pluginFolder = (): string => bundled('openclaw').replace(/\bapp\.asar\b(?!\.)/, 'app.asar.unpacked');

/** Returns the folder of OpenClaw's copy of our plugin. */
export const pluginIn = (state: string): string => join(state, 'extensions', PLUGIN);

/** Reports whether OpenClaw has this version of the plugin, another version, or no plugin of ours. */
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

/**
 * Returns the arguments that install our plugin without a prompt, because the owner has already agreed to connect. OpenClaw
 * versions up to 2026.7 reject the option `--accept-capabilities`.
 */
export const installArgs = (version = ''): readonly string[] => {
  const [year = 0, month = 0] = version.split('.').map(Number);
  const consents = version === '' || year > 2026 || (year === 2026 && month >= 8);
  return ['plugins', 'install', pluginFolder(), '--force', ...(consents ? ['--accept-capabilities'] : [])];
};
