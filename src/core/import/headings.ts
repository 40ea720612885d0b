import type { UnusableEntry } from './import-entry.ts';

interface Heading {
  readonly level: number;
  readonly text: string;
  readonly line: number;
  used: boolean;
}

/** Under which headings a text stands. They become tags, and one that nothing stands under is told. */
export class Headings {
  readonly #all: Heading[] = [];
  #path: readonly Heading[] = [];

  push(level: number, text: string, line: number): void {
    const heading = { level, text, line, used: false };
    this.#path = [...this.#path.filter((above) => above.level < level), heading];
    this.#all.push(heading);
  }

  /** For something that stands here. */
  currentPath(): string[] {
    for (const heading of this.#path) heading.used = true;
    return this.#path.map(({ text }) => text);
  }

  get unused(): UnusableEntry[] {
    return this.#all
      .filter(({ used }) => !used)
      .map(({ line, text }) => ({ line, text, message: 'A heading with nothing below it that could be a fact.' }));
  }
}
