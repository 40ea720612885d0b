import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../../core/file/files.ts';

const FILE = 'desktop.json';

export interface WindowBounds {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface DesktopChoices {
  readonly place: WindowBounds | undefined;
  /** True if the owner has been told that the program keeps running when the window is closed. */
  readonly told: boolean;
  /** True if no window is shown when the program is started at login. */
  readonly startsHidden: boolean;
}

/** Stores settings that only the desktop application has. Ignores file errors, because nothing depends on these settings. */
export class DesktopState {
  readonly #path: string;
  #choices: DesktopChoices;

  constructor(folder: string) {
    this.#path = join(folder, FILE);
    this.#choices = read(this.#path);
  }

  get choices(): DesktopChoices {
    return this.#choices;
  }

  update(choices: Partial<DesktopChoices>): void {
    this.#choices = { ...this.#choices, ...choices };
    try {
      writePrivateFile(this.#path, JSON.stringify(this.#choices));
    } catch {
      // Ignore the error: the change is then lost when the program exits.
    }
  }
}

function read(path: string): DesktopChoices {
  const { place, told, startsHidden } = readStored(path);
  return { place: isPlace(place) ? place : undefined, told: told === true, startsHidden: startsHidden === true };
}

/** Reads the file without a schema, because the schema library is not loaded yet when the window is created. */
function readStored(path: string): Readonly<Record<string, unknown>> {
  try {
    const choices: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return typeof choices === 'object' && choices !== null ? { ...choices } : {};
  } catch {
    return {};
  }
}

function isPlace(place: unknown): place is WindowBounds {
  if (typeof place !== 'object' || place === null) return false;
  const { x, y, width, height } = place as Readonly<Record<string, unknown>>;
  return [x, y, width, height].every(Number.isInteger) && Number(width) > 0 && Number(height) > 0;
}

/** True if enough of the window is on a screen for the owner to drag it by its title bar. */
export function isReachable(place: WindowBounds, screens: readonly WindowBounds[]): boolean {
  return screens.some(
    ({ x, y, width, height }) =>
      place.x < x + width - MIN_VISIBLE_PX &&
      place.x + place.width > x + MIN_VISIBLE_PX &&
      place.y >= y &&
      place.y < y + height - MIN_VISIBLE_PX,
  );
}

const MIN_VISIBLE_PX = 40;
