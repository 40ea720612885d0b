import type { UnusableEntry } from './import-entry.ts';

interface Heading {
  readonly level: number;
  readonly text: string;
  readonly line: number;
  used: boolean;
}

/**
 * Tracks the headings above the current line, which become tags of its fact. Headings without a fact are reported as unusable.
 */
export class Headings {
  readonly #all: Heading[] = [];
  #path: readonly Heading[] = [];

  push(level: number, text: string, line: number): void {
    const heading = { level, text, line, used: false };
    this.#path = [...this.#path.filter((above) => above.level < level), heading];
    this.#all.push(heading);
  }

  /** Returns the headings above the current line, and marks them as used. */
  currentPath(): string[] {
    for (const heading of this.#path) heading.used = true;
    return this.#path.map(({ text }) => text);
  }

  get unused(): UnusableEntry[] {
    return this.#all
      .filter(({ used }) => !used)
      .map(({ line, text }) => ({ line, text, message: 'This heading has no fact below it.' }));
  }
}
