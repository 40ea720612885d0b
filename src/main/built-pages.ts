import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { CLAUDE_BUNDLE } from '../contract/limits.ts';

/** Where the build put the window, seen from the sources, from the built program, and from one of its chunks. */
export function findBuiltPages(): string | undefined {
  const places = ['../../out/renderer', '../../renderer'].map((place) => join(import.meta.dirname, place));
  return places.find((place) => existsSync(join(place, 'index.html')));
}

/** The bundle for Claude Desktop as a file that other programs can open: they know nothing of archives. */
export function findBuiltBundle(): string {
  const pages = findBuiltPages()?.replace(/\bapp\.asar\b(?!\.)/, 'app.asar.unpacked');
  const bundle = pages && join(pages, CLAUDE_BUNDLE);
  if (bundle !== undefined && existsSync(bundle)) return bundle;
  throw new Failure('unavailable', 'The bundle for Claude Desktop is missing from this installation; install it anew.');
}
