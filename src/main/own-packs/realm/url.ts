import { callHost } from './host.ts';

type Pair = [name: string, value: string];
type UncheckedPair = readonly [name: unknown, value: unknown];

const FIELDS = ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'] as const;
type Parts = Record<(typeof FIELDS)[number] | 'href' | 'origin', string>;

const NO_CHANGE = ['', ''];

const asText = (value: unknown): string => String(value);

/** Parses a URL in the process, so that a URL has the same meaning in the pack and in the program. */
function parseUrl(text: unknown, base?: unknown, [field, value] = NO_CHANGE): Parts | undefined {
  const given = { text: String(text), ...(base !== undefined && { base: asText(base) }), field, value };
  const answer = callHost('url', JSON.stringify(given));
  return answer === '' ? undefined : (JSON.parse(answer) as Parts);
}

export class SearchParams {
  #pairs: Pair[];
  readonly #onChange: (text: string) => void;

  constructor(from: unknown = '', onChange: (text: string) => void = () => undefined) {
    this.#onChange = onChange;
    if (typeof from === 'object' && from !== null) {
      const pairs = Symbol.iterator in from ? [...(from as Iterable<UncheckedPair>)] : (Object.entries(from) as UncheckedPair[]);
      this.#pairs = pairs.map(([name, value]) => [String(name), String(value)]);
    } else {
      this.#pairs = JSON.parse(callHost('pairs', String(from))) as Pair[];
    }
  }

  get size(): number {
    return this.#pairs.length;
  }

  get(name: string): string | null {
    return this.#pairs.find(([one]) => one === name)?.[1] ?? null;
  }

  getAll(name: string): string[] {
    return this.#pairs.filter(([one]) => one === name).map(([, value]) => value);
  }

  has(name: string): boolean {
    return this.#pairs.some(([one]) => one === name);
  }

  append(name: unknown, value: unknown): void {
    this.#replace([...this.#pairs, [String(name), String(value)]]);
  }

  set(name: unknown, value: unknown): void {
    const at = this.#pairs.findIndex(([one]) => one === name);
    const pair: Pair = [String(name), String(value)];
    const others = this.#pairs.filter(([one], index) => one !== name || index === at);
    this.#replace(at < 0 ? [...others, pair] : others.with(at, pair));
  }

  delete(name: string): void {
    this.#replace(this.#pairs.filter(([one]) => one !== name));
  }

  sort(): void {
    this.#replace(this.#pairs.toSorted(([one], [other]) => (one < other ? -1 : Number(one > other))));
  }

  forEach(callback: (value: string, name: string) => void): void {
    for (const [name, value] of this.#pairs) callback(value, name);
  }

  *entries(): Generator<Pair> {
    for (const [name, value] of this.#pairs) yield [name, value];
  }

  *keys(): Generator<string> {
    for (const [name] of this.#pairs) yield name;
  }

  *values(): Generator<string> {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator](): Generator<Pair> {
    return this.entries();
  }

  toString(): string {
    return callHost('query', JSON.stringify(this.#pairs));
  }

  #replace(pairs: Pair[]): void {
    this.#pairs = pairs;
    this.#onChange(this.toString());
  }
}

export class Address {
  declare href: string;
  declare readonly origin: string;
  declare protocol: string;
  declare username: string;
  declare password: string;
  declare host: string;
  declare hostname: string;
  declare port: string;
  declare pathname: string;
  declare search: string;
  declare hash: string;
  #parts: Parts;

  constructor(text: unknown, base?: unknown) {
    const parts = parseUrl(text, base);
    if (!parts) throw new TypeError('Invalid URL');
    this.#parts = parts;
  }

  static canParse(text: unknown, base?: unknown): boolean {
    return parseUrl(text, base) !== undefined;
  }

  static parse(text: unknown, base?: unknown): Address | null {
    return Address.canParse(text, base) ? new Address(text, base) : null;
  }

  static {
    for (const field of [...FIELDS, 'href', 'origin'] as const) {
      Object.defineProperty(Address.prototype, field, {
        enumerable: true,
        configurable: true,
        get(this: Address) {
          return this.#parts[field];
        },
        set(this: Address, value: unknown) {
          if (field === 'origin') return;
          const parts = field === 'href' ? parseUrl(value) : this.#with(field, String(value));
          if (!parts) throw new TypeError('Invalid URL');
          this.#parts = parts;
        },
      });
    }
  }

  get searchParams(): SearchParams {
    return new SearchParams(this.#parts.search, (text) => {
      this.search = text;
    });
  }

  toString(): string {
    return this.#parts.href;
  }

  toJSON(): string {
    return this.#parts.href;
  }

  #with(field: string, value: string): Parts | undefined {
    return parseUrl(this.#parts.href, undefined, [field, value]);
  }
}
