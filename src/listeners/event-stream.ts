import type { ServerResponse } from 'node:http';
import { CONNECTION_LIMITS } from './limits.ts';
import { endResponse, SECURITY_HEADERS } from './response.ts';
import type { Exchange } from './route.ts';
import type { StreamRegistry } from './stream-registry.ts';

/** `Connection: close` makes the connection close with the stream, so that every client notices the end of the stream. */
const HEADERS = ['Content-Type', 'text/event-stream', 'Connection', 'close', ...SECURITY_HEADERS];

interface EventFields {
  readonly event?: string;
  readonly id?: number;
}

/** A stream of server-sent events to one client. A client that stops reading is disconnected, but can connect again. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #unreadBytes: number;
  #lastBytesWritten = 0;

  constructor(response: ServerResponse, unreadBytes: number = CONNECTION_LIMITS.unreadStreamBytes) {
    this.#response = response;
    this.#unreadBytes = unreadBytes;
    response.writeHead(200, HEADERS);
    // Node sends the headers with the first write, so write a comment now instead of waiting for the first event.
    this.#write(': stream open\n\n');
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed;
  }

  send(data: string, { event, id }: EventFields = {}): void {
    this.#write(`${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`);
  }

  /** Sends the event, or drops it if the client has too many unread events. */
  sendOrDrop(data: string, fields?: EventFields): void {
    if (this.#response.writableLength <= CONNECTION_LIMITS.unreadStreamBytes) this.send(data, fields);
  }

  /**
   * Sends a comment to keep an idle connection open. Disconnects a client that has unread data and has read nothing since the
   * last call.
   */
  keepAlive(): void {
    const bytesWritten = this.#response.socket?.bytesWritten ?? 0;
    if (this.#response.writableLength > 0 && bytesWritten === this.#lastBytesWritten) this.#response.destroy();
    this.#lastBytesWritten = bytesWritten;
    this.#write(': keep-alive\n\n');
  }

  end(): void {
    if (this.isOpen) endResponse(this.#response);
  }

  #write(text: string): void {
    if (!this.isOpen) return;
    if (this.#response.writableLength > this.#unreadBytes) this.#response.destroy();
    else this.#response.write(text);
  }
}

interface StreamOptions {
  readonly unreadBytes?: number;
  readonly onClose: (stream: EventStream) => void;
  /** Called when the token expires or is revoked, and when the program exits. By default, ends the stream. */
  readonly onTokenEnd?: (stream: EventStream) => void;
}

export function openEventStream(
  registry: StreamRegistry,
  exchange: Exchange,
  { unreadBytes, onClose, onTokenEnd = (stream) => stream.end() }: StreamOptions,
): EventStream {
  const { response } = exchange;
  const registration = registry.open(exchange, { end: () => onTokenEnd(stream), keepAlive: () => stream.keepAlive() });
  const stream = new EventStream(response, unreadBytes);
  const closed = (): void => {
    registration[Symbol.dispose]();
    onClose(stream);
  };
  response.once('close', closed);
  // If the client has already disconnected, no further 'close' event follows.
  if (response.destroyed || response.socket?.destroyed) closed();
  return stream;
}
