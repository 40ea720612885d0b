import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What was settled when the program was built. */
export interface BuildInfo {
  readonly version: string;
  /** Where a newer version can be asked for; empty where nowhere. */
  readonly updates: string;
}

/** From package.json, which lies in the root of every form of the program: npm's own file, with one field of ours. */
export function readBuildInfo(root: string): BuildInfo {
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  const { version, helmdeck } = JSON.parse(text) as { version: string; helmdeck?: { updates?: string } };
  return { version, updates: helmdeck?.updates ?? '' };
}
