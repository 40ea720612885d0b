/** Numbers for the categories that some fact is in. They are few, and stand in clear beside every sealed entry anyway. */
export class CategoryTable {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #facts: number[] = [];
  readonly #spare: number[] = [];

  find(name: string): number | undefined {
    return this.#numbers.get(name);
  }

  name(number: number): string {
    return this.#names[number] ?? '';
  }

  /** One fact more is in it. */
  retain(name: string): number {
    const number = this.#numbers.get(name) ?? this.#spare.pop() ?? this.#names.length;
    this.#numbers.set(name, number);
    this.#names[number] = name;
    this.#facts[number] = (this.#facts[number] ?? 0) + 1;
    return number;
  }

  /** One fact less is in it. */
  release(number: number): void {
    const left = (this.#facts[number] ?? 0) - 1;
    this.#facts[number] = left;
    if (left > 0) return;
    this.#numbers.delete(this.name(number));
    this.#names[number] = '';
    this.#spare.push(number);
  }
}
