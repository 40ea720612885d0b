import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['src/**/*', 'integrations/**/*.{mjs,json}', 'electron.vite.config.ts', 'package-lock.json'];
/** The build writes it last. */
const RESULT = 'out/renderer/index.html';
const BUILDER = 'node_modules/electron-vite/bin/electron-vite.js';

/** Whether what was built is what the sources say. */
function isFresh(root: string): boolean {
  const built = statSync(join(root, RESULT), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const latest = Math.max(0, ...globSync(SOURCES, { cwd: root }).map((path) => statSync(join(root, path)).mtimeMs));
  return built >= latest;
}

/** Builds program and window if they are not there or older than their sources. The result says why that could not be. */
export async function buildIfStale(root: string, say: (line: string) => void): Promise<string | undefined> {
  if (isFresh(root)) return undefined;
  if (!existsSync(join(root, BUILDER))) return 'What builds it is not installed; run npm ci.';
  say('Building the window…');
  const child = spawn(process.execPath, [BUILDER, 'build', '--ignoreConfigWarning'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return undefined;
  say(said.trimEnd());
  return 'It could not be built, for the reason above.';
}
