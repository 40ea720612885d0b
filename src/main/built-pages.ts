import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where the build put the window, seen from the sources, from the built program, and from one of its chunks. */
export function builtPages(): string | undefined {
  const places = ['../../out/renderer', '../../renderer'].map((place) => join(import.meta.dirname, place));
  return places.find((place) => existsSync(join(place, 'index.html')));
}
