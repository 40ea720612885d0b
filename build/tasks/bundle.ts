import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CLAUDE_BUNDLE } from '../../src/contract/limits.ts';
import { zip } from './zip.ts';

export const BUNDLE = `out/renderer/${CLAUDE_BUNDLE}`;

/** Where each file of the bundle comes from. The bridge is the very file that the program brings along. */
const FILES = {
  'manifest.json': 'integrations/claude-desktop/manifest.json',
  'icon.png': 'build/icons/512x512.png',
  'server/helmdeck-memory-mcp.mjs': 'integrations/stdio-bridge/helmdeck-memory-mcp.mjs',
  LICENSE: 'LICENSE',
};

/** What Claude Desktop installs with one click, given out by the window. Every build holds it; `npm run bundle` writes it alone. */
export const bundle = (): Buffer =>
  zip(Object.fromEntries(Object.entries(FILES).map(([name, path]) => [name, readFileSync(path)])));

if (import.meta.main) {
  mkdirSync(dirname(BUNDLE), { recursive: true });
  writeFileSync(BUNDLE, bundle());
  console.log(BUNDLE);
}
