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
  /** The owner was told that closing the window ends nothing. */
  readonly told: boolean;
  /** Started with the session, the program shows no window. */
  readonly startsHidden: boolean;
}

/** What the desktop alone remembers. A file that cannot be read or written is worth no alarm: all of it is a convenience. */
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
      // It is asked for again, or told again.
    }
  }
}

function read(path: string): DesktopChoices {
  const { place, told, startsHidden } = kept(path);
  return { place: isPlace(place) ? place : undefined, told: told === true, startsHidden: startsHidden === true };
}

/** By hand: the window is shown before anything that parses by schema is there. */
function kept(path: string): Readonly<Record<string, unknown>> {
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

/** Whether enough of the place is on a screen to find the window and to take hold of its upper edge. */
export function isReachable(place: WindowBounds, screens: readonly WindowBounds[]): boolean {
  return screens.some(
    ({ x, y, width, height }) =>
      place.x < x + width - GRIP && place.x + place.width > x + GRIP && place.y >= y && place.y < y + height - GRIP,
  );
}

const GRIP = 40;
