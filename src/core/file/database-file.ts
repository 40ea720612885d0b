import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PAGE_BYTES } from '../store/database.ts';

const PAGE = PAGE_BYTES;
const LOG_HEADER = 32;
/** A header of 24 bytes, which begins with the page's number, and the page. */
const FRAME = 24 + PAGE;
const PAGES_AT_ONCE = 256;
const FRAMES_AT_ONCE = 64;

/** First bytes of the pages that hold rows or index entries, and how long their header is. Every other page begins with 0. */
const HEADERS = new Map([
  [2, 12],
  [5, 12],
  [10, 8],
  [13, 8],
]);

/**
 * What has to be done to the file beside SQLite. Above all it overwrites what SQLite leaves behind. `secure_delete` clears a row where it stood last, but when a page is split or
 * merged with its neighbours, copies of its rows stay behind in the unused middle of the page, and nothing ever clears
 * those (R-PURGE-01). Which pages have changed is read from the log before it is emptied.
 *
 * It clears only where the file format says that nothing is stored, only while the log is empty and nobody else may write.
 * The handle stays open as long as the database does: closing it would take away the locks SQLite holds on the file.
 */
export class DatabaseFile {
  readonly #log: string;
  readonly #handle: number;
  readonly #changed = new Set<number>();
  #noted = 0;
  #unflushed = false;
  #closed = false;

  constructor(file: string) {
    this.#log = `${file}-wal`;
    this.#handle = openSync(file, 'r+');
  }

  /** Pages that changed since they were last cleared. */
  get changedPages(): number {
    return this.#changed.size;
  }

  /** Remembers which pages the log holds, of so many frames as it has now. */
  recordChangedPages(frames: number): void {
    if (frames <= this.#noted) return;
    const log = openSync(this.#log, 'r');
    const bytes = Buffer.allocUnsafe(FRAMES_AT_ONCE * FRAME);
    try {
      while (this.#noted < frames) {
        const count = Math.min(FRAMES_AT_ONCE, frames - this.#noted);
        const read = readSync(log, bytes, 0, count * FRAME, LOG_HEADER + this.#noted * FRAME);
        if (read < count * FRAME) throw new Error('The log is shorter than SQLite says.');
        for (let frame = 0; frame < count; frame += 1) this.#changed.add(bytes.readUInt32BE(frame * FRAME));
        this.#noted += count;
      }
    } finally {
      closeSync(log);
    }
  }

  /** The log has been moved into the file as a whole, so the next frame will be its first again. */
  logRestarted(): void {
    this.#noted = 0;
  }

  /** Makes a file that is shorter than it will have to be so much longer, and more ahead; says how long it is then. */
  preallocate(needed: number, ahead: number): number {
    const size = fstatSync(this.#handle).size;
    if (size >= needed) return size;
    try {
      return this.#growFrom(size, needed + ahead);
    } catch {
      return this.#growFrom(size, needed);
    }
  }

  #growFrom(size: number, bytes: number): number {
    const nothing = Buffer.alloc(bytes - size);
    try {
      for (let at = size; at < bytes;) at += writeSync(this.#handle, nothing, 0, bytes - at, at);
      return bytes;
    } catch (error) {
      // Half of the room is of use to nobody, and of harm to a forget that needs the rest.
      ftruncateSync(this.#handle, size);
      throw error;
    }
  }

  logIsEmpty(): boolean {
    return statSync(this.#log).size === 0;
  }

  /** True when something was overwritten: whoever holds copies of pages in memory must forget them. */
  scrub(): boolean {
    let scrubbed = false;
    const page = Buffer.allocUnsafe(PAGE);
    for (const number of this.#changed) {
      const at = (number - 1) * PAGE;
      if (readSync(this.#handle, page, 0, PAGE, at) < PAGE) continue;
      const unused = unusedPart(page, number);
      if (!unused || (isClear(page, unused) && !this.#unflushed)) continue;
      writeSync(this.#handle, Buffer.alloc(unused.end - unused.start), 0, unused.end - unused.start, at + unused.start);
      scrubbed = true;
    }
    // What a flush that failed has written looks written, and is not.
    this.#unflushed = scrubbed;
    if (scrubbed) fdatasyncSync(this.#handle);
    this.#unflushed = false;
    this.#changed.clear();
    return scrubbed;
  }

  /** Looks for what an earlier run left behind when it was killed. True when there is something to scrub. */
  async scanForRemnants(): Promise<boolean> {
    const pages = Math.floor(fstatSync(this.#handle).size / PAGE);
    const bytes = Buffer.allocUnsafe(PAGES_AT_ONCE * PAGE);
    for (let first = 0; first < pages && !this.#closed; first += PAGES_AT_ONCE) {
      const read = Math.floor(readSync(this.#handle, bytes, 0, bytes.length, first * PAGE) / PAGE);
      for (let index = 0; index < read; index += 1) {
        const page = bytes.subarray(index * PAGE, (index + 1) * PAGE);
        const unused = unusedPart(page, first + index + 1);
        if (unused && !isClear(page, unused)) this.#changed.add(first + index + 1);
      }
      await nextTurn();
    }
    return this.#changed.size > 0;
  }

  close(): void {
    this.#closed = true;
    closeSync(this.#handle);
  }
}

/** Between the list of cells, which grows down the page, and the cells themselves, which grow up from its end. */
function unusedPart(page: Buffer, number: number): { start: number; end: number } | undefined {
  const header = number === 1 ? 100 : 0;
  const length = HEADERS.get(page.readUInt8(header));
  if (length === undefined) return undefined;
  const start = header + length + 2 * page.readUInt16BE(header + 3);
  const end = page.readUInt16BE(header + 5) || 65_536;
  return start <= end && end <= PAGE ? { start, end } : undefined;
}

const NOTHING = Buffer.alloc(PAGE);

const isClear = (page: Buffer, { start, end }: { start: number; end: number }): boolean =>
  page.compare(NOTHING, 0, end - start, start, end) === 0;
