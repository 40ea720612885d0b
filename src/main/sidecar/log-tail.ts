import { findSecret } from '../../core/secret-guard.ts';

const LINES = 40;
const CHARACTERS = 300;
/** Within a minute. A program that says more has gone wrong, and reading it all would take the time of others. */
const FLOOD_BYTES = 8 * 1024 * 1024;
const MINUTE_MS = 60_000;

/** The end of what Ollama says. Only lines of a form that holds nothing of what was embedded; how many others there were is told. */
export class LogTail {
  readonly #lines: string[] = [];
  readonly #now: () => number;
  #held = '';
  #others = 0;
  #since = -Infinity;
  #bytes = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether that was within bounds. */
  hear(chunk: Buffer): boolean {
    const now = this.#now();
    if (now - this.#since >= MINUTE_MS) {
      this.#since = now;
      this.#bytes = 0;
    }
    this.#bytes += chunk.length;
    if (this.#bytes > FLOOD_BYTES) return false;
    const lines = (this.#held + chunk.toString('latin1')).split('\n');
    this.#held = (lines.pop() ?? '').slice(0, CHARACTERS);
    for (const line of lines) this.#take(line);
    return true;
  }

  get lines(): readonly string[] {
    return this.#others === 0 ? [...this.#lines] : [...this.#lines, `(and ${this.#others} other lines)`];
  }

  #take(line: string): void {
    const told = tellable(line);
    if (told === undefined) {
      this.#others += line === '' ? 0 : 1;
      return;
    }
    this.#lines.push(told);
    if (this.#lines.length > LINES) this.#lines.shift();
  }
}

const REQUEST = /^\[GIN\] (\S+) - (\S+) \| +(\d{3}) \| +(\S+) \| +\S+ \| (\w+) +"(\/[\w/.:-]*)"$/;
const EVENT = /^time=(\S+) level=(\w+) source=([\w./-]+:\d+) msg=("(?:[^"\\]|\\.)*"|\S+)/;
const END = /^(Error|panic|fatal error): /;

/**
 * What its fields say is left out, for they may repeat a question; its own sentences do not.
 * @internal
 */
export function tellable(line: string): string | undefined {
  const text = line.slice(0, 4 * CHARACTERS).replaceAll(/[^ -~]/g, '');
  const request = REQUEST.exec(text);
  if (request) return request.slice(1).join(' ');
  const event = EVENT.exec(text);
  if (!event && !END.test(text)) return undefined;
  const told = (event ? event.slice(1).join(' ') : text).slice(0, CHARACTERS);
  return findSecret(told) ? undefined : told;
}
