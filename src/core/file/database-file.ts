import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PAGE_BYTES } from '../store/database.ts';

const PAGE = PAGE_BYTES;
const LOG_HEADER = 32;
/** Bytes of a log frame: a header of 24 bytes, which begins with the page number, and the page. */
const FRAME = 24 + PAGE;
const PAGES_AT_ONCE = 256;
const FRAMES_AT_ONCE = 64;

/** Page header lengths by the first byte of the page. Only pages of tables and indexes are listed; other pages begin with 0. */
const HEADERS = new Map([
  [2, 12],
  [5, 12],
  [10, 8],
  [13, 8],
]);

/**
 * Changes the database file without SQLite: preallocates space and scrubs deleted bytes. `secure_delete` overwrites a deleted
 * row. But when a page is split or merged, copies of its rows stay in the unused middle of the page (R-PURGE-01). The log shows
 * which pages have changed.
 *
 * Scrubbing overwrites only parts that the file format does not use, and only while the log is empty and no other connection can
 * write. The file handle stays open as long as the database, because closing it would release SQLite's locks on the file.
 */
export class DatabaseFile {
  readonly #log: string;
  readonly #handle: number;
  readonly #changed = new Set<number>();
  #recordedFrames = 0;
  #unflushed = false;
  #closed = false;

  constructor(file: string) {
    this.#log = `${file}-wal`;
    this.#handle = openSync(file, 'r+');
  }

  /** Number of pages that changed after they were last scrubbed. */
  get changedPages(): number {
    return this.#changed.size;
  }

  /** Records which pages the first `frames` frames of the log contain. */
  recordChangedPages(frames: number): void {
    if (frames <= this.#recordedFrames) return;
    const log = openSync(this.#log, 'r');
    const bytes = Buffer.allocUnsafe(FRAMES_AT_ONCE * FRAME);
    try {
      while (this.#recordedFrames < frames) {
        const count = Math.min(FRAMES_AT_ONCE, frames - this.#recordedFrames);
        const read = readSync(log, bytes, 0, count * FRAME, LOG_HEADER + this.#recordedFrames * FRAME);
        if (read < count * FRAME) throw new Error('The log is shorter than SQLite reports.');
        for (let frame = 0; frame < count; frame += 1) this.#changed.add(bytes.readUInt32BE(frame * FRAME));
        this.#recordedFrames += count;
      }
    } finally {
      closeSync(log);
    }
  }

  /** Call this when the next commit will overwrite the log from its first frame. */
  logRestarted(): void {
    this.#recordedFrames = 0;
  }

  /** Grows the file to `needed` bytes, and by `ahead` more bytes if the disk has space. Returns the length of the file. */
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
    const zeros = Buffer.alloc(bytes - size);
    try {
      for (let at = size; at < bytes;) at += writeSync(this.#handle, zeros, 0, bytes - at, at);
      return bytes;
    } catch (error) {
      // Free the space that was written, because a forget may need it.
      ftruncateSync(this.#handle, size);
      throw error;
    }
  }

  logIsEmpty(): boolean {
    return statSync(this.#log).size === 0;
  }

  /**
   * Overwrites the unused parts of the changed pages with zeros. Returns true if bytes were overwritten; SQLite's cached pages
   * are then out of date.
   */
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
    // If the flush fails, the file looks scrubbed, but the disk may still contain the old bytes. The flag then makes the next
    // call write the zeros again.
    this.#unflushed = scrubbed;
    if (scrubbed) fdatasyncSync(this.#handle);
    this.#unflushed = false;
    this.#changed.clear();
    return scrubbed;
  }

  /** Searches all pages for deleted bytes that a killed process did not scrub. Returns true if there are any. */
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

/** Returns the gap between the cell pointers, which grow from the start of the page, and the cells, which grow from its end. */
function unusedPart(page: Buffer, number: number): { start: number; end: number } | undefined {
  const header = number === 1 ? 100 : 0;
  const length = HEADERS.get(page.readUInt8(header));
  if (length === undefined) return undefined;
  const start = header + length + 2 * page.readUInt16BE(header + 3);
  const end = page.readUInt16BE(header + 5) || 65_536;
  return start <= end && end <= PAGE ? { start, end } : undefined;
}

const ZEROS = Buffer.alloc(PAGE);

const isClear = (page: Buffer, { start, end }: { start: number; end: number }): boolean =>
  page.compare(ZEROS, 0, end - start, start, end) === 0;
