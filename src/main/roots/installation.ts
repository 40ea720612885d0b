import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { CLAUDE_BUNDLE } from '../../contract/names.ts';

/** Folder that contains package.json, above the sources or the built program. */
export const ROOT = findRoot(import.meta.dirname);

function findRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) || dirname(folder) === folder ? folder : findRoot(dirname(folder));
}

/** Values that are fixed when the program is built. */
export interface BuildInfo {
  readonly version: string;
  /** Address for update checks. Empty if the build does not check for updates. */
  readonly updates: string;
}

export function readBuildInfo(): BuildInfo {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  const { version, helmdeck } = JSON.parse(text) as { version: string; helmdeck?: { updates?: string } };
  return { version, updates: helmdeck?.updates ?? '' };
}

/** Returns the folder of the built window. Undefined if the window is not built. */
export function findWindowFolder(): string | undefined {
  const folder = join(ROOT, 'out/renderer');
  return existsSync(join(folder, 'index.html')) ? folder : undefined;
}

/** Returns the path of the Claude Desktop bundle. The bundle is outside the asar archive, so that other programs can open it. */
export function findClaudeBundle(): string {
  const bundle = join(ROOT.replace(/\bapp\.asar$/, 'app.asar.unpacked'), 'out/renderer', CLAUDE_BUNDLE);
  if (existsSync(bundle)) return bundle;
  throw new Failure('unavailable', 'The bundle for Claude Desktop is missing. Reinstall Helmdeck Memory.');
}
