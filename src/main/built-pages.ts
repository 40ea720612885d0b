import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { CLAUDE_BUNDLE } from '../contract/limits.ts';

/** The folder of the built window, relative to the sources or to the built program. */
export function findBuiltPages(): string | undefined {
  const places = ['../../out/renderer', '../../renderer'].map((place) => join(import.meta.dirname, place));
  return places.find((place) => existsSync(join(place, 'index.html')));
}

/** The bundle for Claude Desktop, outside the asar archive so that other programs can open it. */
export function findBuiltBundle(): string {
  const pages = findBuiltPages()?.replace(/\bapp\.asar\b(?!\.)/, 'app.asar.unpacked');
  const bundle = pages && join(pages, CLAUDE_BUNDLE);
  if (bundle !== undefined && existsSync(bundle)) return bundle;
  throw new Failure('unavailable', 'The bundle for Claude Desktop is missing. Reinstall Helmdeck Memory.');
}
