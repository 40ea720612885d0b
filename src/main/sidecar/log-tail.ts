import { MINUTE_MS } from '../../contract/units.ts';
import { findSecret } from '../../core/operations/secret-guard.ts';

const LINES = 40;
const CHARACTERS = 300;
/** Maximum log output per minute. A process that logs more is broken, and reading many lines would slow down this program. */
const FLOOD_BYTES = 8 * 1024 * 1024;
const FLOOD_LINES = 20_000;

/**
 * Stores the last log lines of Ollama. Keeps only lines in a known format, which cannot contain text sent for embedding. All
 * other lines are only counted.
 */
export class LogTail {
  readonly #lines: string[] = [];
  readonly #now: () => number;
  #incomplete = '';
  #hidden = 0;
  #since = -Infinity;
  #bytes = 0;
  #lineCount = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds log output. Returns false if the output exceeds the limits per minute. */
  append(chunk: Buffer): boolean {
    const now = this.#now();
    if (now - this.#since >= MINUTE_MS) {
      this.#since = now;
      this.#bytes = 0;
      this.#lineCount = 0;
    }
    this.#bytes += chunk.length;
    if (this.#bytes > FLOOD_BYTES) return false;
    const lines = (this.#incomplete + chunk.toString('latin1')).split('\n');
    this.#lineCount += lines.length - 1;
    if (this.#lineCount > FLOOD_LINES) return false;
    this.#incomplete = (lines.pop() ?? '').slice(0, CHARACTERS);
    for (const line of lines) this.#add(line);
    return true;
  }

  get lines(): readonly string[] {
    return this.#hidden === 0 ? [...this.#lines] : [...this.#lines, `(and ${this.#hidden} other lines)`];
  }

  #add(line: string): void {
    const safe = safeLogLine(line);
    if (safe === undefined) {
      this.#hidden += line === '' ? 0 : 1;
      return;
    }
    this.#lines.push(safe);
    if (this.#lines.length > LINES) this.#lines.shift();
  }
}

const REQUEST = /^\[GIN\] (\S+) - (\S+) \| +(\d{3}) \| +(\S+) \| +\S+ \| (\w+) +"(\/[\w/.:-]*)"$/;
const EVENT = /^time=(\S+) level=(\w+) source=([\w./-]+:\d+) msg=("(?:[^"\\]|\\.)*"|\S+)/;
/** Fatal errors that Go's runtime prints. Only numbers and addresses vary in them. */
const FATAL_ERRORS = [
  /^Error: listen tcp [\d.:[\]]{3,60}: bind: (?:address already in use|permission denied|cannot assign requested address)/,
  /^panic: runtime error: (?:invalid memory address or nil pointer dereference|integer divide by zero)/,
  /^panic: runtime error: (?:index|slice bounds) out of range \[[\d:-]{0,24}\](?: with (?:length|capacity) \d{1,12})?/,
  /^fatal error: (?:runtime: (?:cannot allocate memory|out of memory)|out of memory|stack overflow|all goroutines are asleep - deadlock!)/,
];
/** All other fatal errors. Their text can contain parts of a request, so it is omitted. */
const OTHER_FATAL_ERROR = /^(Error|panic|fatal error): /;

/**
 * Returns the part of a log line that cannot contain the text of a request, or undefined. Keeps Ollama's own messages, but not
 * the fields after them.
 *
 * @internal
 */
export function safeLogLine(line: string): string | undefined {
  const text = line.slice(0, 4 * CHARACTERS).replaceAll(/[^ -~]/g, '');
  const safe = safePartOf(text)?.slice(0, CHARACTERS);
  return safe === undefined || findSecret(safe) ? undefined : safe;
}

function safePartOf(text: string): string | undefined {
  const found = REQUEST.exec(text) ?? EVENT.exec(text);
  if (found) return found.slice(1).join(' ');
  for (const pattern of FATAL_ERRORS) {
    const [sentence] = pattern.exec(text) ?? [];
    if (sentence !== undefined) return sentence;
  }
  const [, kind] = OTHER_FATAL_ERROR.exec(text) ?? [];
  return kind === undefined ? undefined : `${kind} (message omitted)`;
}
