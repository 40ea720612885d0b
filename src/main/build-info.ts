import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Values that are fixed when the program is built. */
export interface BuildInfo {
  readonly version: string;
  /** Address for update checks; empty if there are none. */
  readonly updates: string;
}

/** Reads package.json, which every form of the program contains. */
export function readBuildInfo(root: string): BuildInfo {
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  const { version, helmdeck } = JSON.parse(text) as { version: string; helmdeck?: { updates?: string } };
  return { version, updates: helmdeck?.updates ?? '' };
}
