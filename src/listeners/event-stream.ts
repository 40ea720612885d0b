import type { ServerResponse } from 'node:http';
import { SECURITY_HEADERS, endResponse } from './response.ts';

/** What one stream may hold for a reader who does not read: a handful of the longest answers. */
const UNREAD_BYTES = 4 * 1024 * 1024;
/** And of what may be left out. */
const SPARE_BYTES = 64 * 1024;

/** When the stream ends, so does the connection: a reader who counts bytes only sees it too. */
const HEAD = ['Content-Type', 'text/event-stream', 'Connection', 'close', ...SECURITY_HEADERS];

/** Server-sent events to one reader. One who does not read is let go, and may come again. */
export class EventStream {
  readonly #response: ServerResponse;
  #written = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, HEAD);
    // Whoever waits for the head would else wait for the first event.
    this.#write(': this stream is open\n\n');
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed;
  }

  send(event: string, data: string, id?: number): void {
    this.#write(`event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`);
  }

  /** What nobody misses is not kept for a reader who does not read. */
  sendIfRoom(event: string, data: string): void {
    if (this.#response.writableLength <= SPARE_BYTES) this.send(event, data);
  }

  /** A sign of life, so that nobody between us takes silence for the end. */
  keepAlive(): void {
    const written = this.#response.socket?.bytesWritten ?? 0;
    // Nothing of what waits was taken since the last time.
    if (this.#response.writableLength > 0 && written === this.#written) this.#response.destroy();
    this.#written = written;
    this.#write(': still here\n\n');
  }

  end(): void {
    if (this.isOpen) endResponse(this.#response);
  }

  #write(frame: string): void {
    if (!this.isOpen) return;
    if (this.#response.writableLength > UNREAD_BYTES) this.#response.destroy();
    else this.#response.write(frame);
  }
}
