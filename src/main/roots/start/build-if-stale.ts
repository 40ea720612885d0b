import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['src/**/*', 'integrations/**/*.{mjs,json}', 'electron.vite.config.ts', 'package-lock.json'];
/** The file that the build writes last. */
const RESULT = 'out/renderer/index.html';
const BUILDER = 'node_modules/electron-vite/bin/electron-vite.js';

function isFresh(root: string): boolean {
  const built = statSync(join(root, RESULT), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const latest = Math.max(0, ...globSync(SOURCES, { cwd: root }).map((path) => statSync(join(root, path)).mtimeMs));
  return built >= latest;
}

/** Builds the program and the window if the build is missing or stale. Returns undefined, or the error message if this fails. */
export async function buildIfStale(root: string, print: (line: string) => void): Promise<string | undefined> {
  if (isFresh(root)) return undefined;
  if (!existsSync(join(root, BUILDER))) return 'The build tools are not installed. Run npm ci.';
  print('Building the window…');
  const child = spawn(process.execPath, [BUILDER, 'build', '--ignoreConfigWarning'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return undefined;
  print(output.trimEnd());
  return 'The build failed. Its output is above.';
}
