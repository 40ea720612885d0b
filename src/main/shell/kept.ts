import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivately } from '../../core/files.ts';

const FILE = 'desktop.json';

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Choices {
  readonly place: Place | undefined;
  /** The owner was told that closing the window ends nothing. */
  readonly told: boolean;
  /** Started with the session, the program shows no window. */
  readonly startsHidden: boolean;
}

/** What the desktop alone remembers. A file that cannot be read or written is worth no alarm: all of it is a convenience. */
export class Kept {
  readonly #path: string;
  #choices: Choices;

  constructor(folder: string) {
    this.#path = join(folder, FILE);
    this.#choices = read(this.#path);
  }

  get choices(): Choices {
    return this.#choices;
  }

  keep(choices: Partial<Choices>): void {
    this.#choices = { ...this.#choices, ...choices };
    try {
      writePrivately(this.#path, JSON.stringify(this.#choices));
    } catch {
      // It is asked for again, or told again.
    }
  }
}

function read(path: string): Choices {
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

function isPlace(place: unknown): place is Place {
  if (typeof place !== 'object' || place === null) return false;
  const { x, y, width, height } = place as Readonly<Record<string, unknown>>;
  return [x, y, width, height].every(Number.isInteger) && Number(width) > 0 && Number(height) > 0;
}

/** Whether enough of the place is on a screen to find the window and to take hold of its upper edge. */
export function isReachable(place: Place, screens: readonly Place[]): boolean {
  return screens.some(
    ({ x, y, width, height }) =>
      place.x < x + width - GRIP && place.x + place.width > x + GRIP && place.y >= y && place.y < y + height - GRIP,
  );
}

const GRIP = 40;
