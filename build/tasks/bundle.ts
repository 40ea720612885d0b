import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CLAUDE_BUNDLE } from '../../src/contract/names.ts';
import { zip } from './zip.ts';

export const BUNDLE = `out/renderer/${CLAUDE_BUNDLE}`;

/** The source of each file in the bundle. The bridge is the same file that the program ships. */
const FILES = {
  'manifest.json': 'integrations/claude-desktop/manifest.json',
  'icon.png': 'build/icons/512x512.png',
  'server/helmdeck-memory-mcp.mjs': 'integrations/stdio-bridge/helmdeck-memory-mcp.mjs',
  LICENSE: 'LICENSE',
};

/** The bundle that Claude Desktop installs with one click. The window offers it. Every build contains it; `npm run bundle` writes only it. */
export const bundle = (): Buffer =>
  zip(Object.fromEntries(Object.entries(FILES).map(([name, path]) => [name, readFileSync(path)])));

if (import.meta.main) {
  mkdirSync(dirname(BUNDLE), { recursive: true });
  writeFileSync(BUNDLE, bundle());
  console.log(BUNDLE);
}
