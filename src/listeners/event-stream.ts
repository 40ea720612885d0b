import type { ServerResponse } from 'node:http';
import { CONNECTION_LIMITS } from './limits.ts';
import { endResponse, SECURITY_HEADERS } from './response.ts';
import type { Exchange } from './route.ts';
import type { StreamRegistry } from './stream-registry.ts';

/** The connection closes with the stream, so a client that only counts bytes notices the end too. */
const HEADERS = ['Content-Type', 'text/event-stream', 'Connection', 'close', ...SECURITY_HEADERS];

interface EventFields {
  readonly event?: string;
  readonly id?: number;
}

/** Server-sent events to one client. A client that stops reading is disconnected and may connect again. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #unreadBytes: number;
  #bytesWritten = 0;

  constructor(response: ServerResponse, unreadBytes: number = CONNECTION_LIMITS.unreadStreamBytes) {
    this.#response = response;
    this.#unreadBytes = unreadBytes;
    response.writeHead(200, HEADERS);
    // Without a first write, Node would hold the headers back until the first event.
    this.#write(': stream open\n\n');
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed;
  }

  send(data: string, { event, id }: EventFields = {}): void {
    this.#write(`${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`);
  }

  /** Drops the event if the client has not read the earlier ones. */
  sendIfRoom(data: string, fields?: EventFields): void {
    if (this.#response.writableLength <= CONNECTION_LIMITS.unreadStreamBytes) this.send(data, fields);
  }

  /** Keeps idle connections open, and disconnects a client that has read nothing since the last call. */
  keepAlive(): void {
    const bytesWritten = this.#response.socket?.bytesWritten ?? 0;
    if (this.#response.writableLength > 0 && bytesWritten === this.#bytesWritten) this.#response.destroy();
    this.#bytesWritten = bytesWritten;
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
  /** Called once, when the connection has closed. */
  readonly onClose: (stream: EventStream) => void;
  /** Called when the token expires or is revoked, and when the program stops. Ends the stream by default. */
  readonly onTokenEnd?: (stream: EventStream) => void;
}

/** Opens an event stream that ends with the token of the request. */
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
  // The client may have disconnected already, and then there is no 'close' event.
  if (response.destroyed || response.socket?.destroyed) closed();
  return stream;
}
