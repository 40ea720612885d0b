import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../contract/failure.ts';
import { ByteBuffer } from '../core/file/byte-buffer.ts';
import type { Clock } from '../core/time/clock.ts';
import { largestItemOfLargestHolder } from './largest-holder.ts';
import { CONNECTION_LIMITS } from './limits.ts';

const CHARSET = String.raw`(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*$`;
const JSON_TYPE = new RegExp(`^application/json${CHARSET}`, 'i');
const NDJSON_TYPE = new RegExp(`^application/x-ndjson${CHARSET}`, 'i');

/** A body that is being received. */
interface PendingBody {
  readonly subject: string;
  readonly bytes: ByteBuffer;
  fail(failure: Failure): void;
}

/** Reads JSON bodies. Checks the headers first, then limits size and time while reading. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #pending = new Set<PendingBody>();
  #heldBytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the parsed body, or `{}` if there is none. The bytes count towards the limit of `subject` while they arrive. */
  async readJson(request: IncomingMessage, response: ServerResponse, subject: string): Promise<unknown> {
    requireLength(request);
    if (!hasBody(request)) {
      if (request.headers['content-type'] !== undefined) requireType(request, JSON_TYPE, 'application/json');
      return {};
    }
    requireType(request, JSON_TYPE, 'application/json');
    const bytes = await this.#read(request, response, subject);
    return bytes.length === 0 ? {} : parseJson(bytes);
  }

  #read(request: IncomingMessage, response: ServerResponse, subject: string): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const bytes = new ByteBuffer();
    const stop = (): void => {
      this.#heldBytes -= bytes.length;
      this.#pending.delete(body);
      timeout[Symbol.dispose]();
      request.off('data', onData).off('end', onEnd).off('close', onCut).off('error', onCut);
    };
    const fail = (failure: Failure): void => {
      stop();
      reject(failure);
    };
    const body: PendingBody = { subject, bytes, fail };
    const onData = (chunk: Buffer): void => {
      bytes.append(chunk);
      this.#heldBytes += chunk.length;
      if (bytes.length > CONNECTION_LIMITS.bodyBytes) fail(tooLarge());
      this.#limitHeldBytes();
    };
    const onEnd = (): void => {
      stop();
      resolve(bytes.bytes());
    };
    const onCut = (): void => fail(bodyFailureOf(request) ?? cutOff());
    const timeout = this.#clock.after(CONNECTION_LIMITS.bodyMs, () => fail(tooSlow()));
    if (request.headers.expect !== undefined) response.writeContinue();
    request.on('data', onData).on('end', onEnd).on('close', onCut).on('error', onCut);
    this.#pending.add(body);
    // The client may have disconnected while its token was verified.
    if (bodyFailureOf(request)) onCut();
    return promise;
  }

  /** Refuses the longest body of the subject that is sending the most, so that other subjects are not affected. */
  #limitHeldBytes(): void {
    while (this.#heldBytes > CONNECTION_LIMITS.bodyTotalBytes) {
      const longest = largestItemOfLargestHolder(
        this.#pending,
        ({ subject }) => subject,
        ({ bytes }) => bytes.length,
      );
      if (!longest) return;
      longest.fail(tooMuchAtOnce());
    }
  }
}

/** Checks the content type of an import. */
export function requireNdjson(request: IncomingMessage): void {
  requireType(request, NDJSON_TYPE, 'application/x-ndjson');
}

/** Parses UTF-8 JSON of limited depth. Failures never include the parser's message, because it quotes the input. */
function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Failure('invalid_input', 'The body is not valid UTF-8; encode it as UTF-8.');
  const text = bytes.toString();
  if (!isWithinDepth(text)) {
    throw new Failure('invalid_input', `The body is nested deeper than ${CONNECTION_LIMITS.jsonDepth} levels; flatten it.`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure('invalid_input', 'The body is not valid JSON; send one JSON object.');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Checks the nesting of JSON text in one pass, before a recursive parser sees it. */
export function isWithinDepth(text: string): boolean {
  if (text.length <= CONNECTION_LIMITS.jsonDepth) return true;
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) inString = !inString;
    else if (code === BACKSLASH && inString) index += 1;
    else if (inString) continue;
    else if (OPENING.has(code)) {
      depth += 1;
      if (depth > CONNECTION_LIMITS.jsonDepth) return false;
    } else if (CLOSING.has(code)) depth -= 1;
  }
  return true;
}

const brokenRequests = new WeakSet<IncomingMessage>();

/** Marks a body whose remaining bytes are not valid HTTP. Its reader fails now, or when it starts. */
export function markBodyBroken(request: IncomingMessage): void {
  brokenRequests.add(request);
  if (request.listenerCount('error') > 0) request.emit('error', malformed());
}

/** Why the rest of the body cannot be read, if that is known already. */
export const bodyFailureOf = (request: IncomingMessage): Failure | undefined =>
  brokenRequests.has(request) ? malformed() : request.destroyed ? cutOff() : undefined;

const malformed = (): Failure =>
  new Failure('invalid_input', 'The body does not match its headers; use an HTTP library to send it.');

const cutOff = (): Failure =>
  new Failure('invalid_input', 'The connection closed before the body was complete; send the request again.');

/** True if the headers announce a body, with or without its length. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Node would read an unused body to its end, however long it is. */
export function rejectBody(request: IncomingMessage): void {
  if (hasBody(request)) throw new Failure('invalid_input', 'This request takes no body; send the fields in the query.');
}

function requireLength({ headers }: IncomingMessage): void {
  if (Number(headers['content-length'] ?? 0) > CONNECTION_LIMITS.bodyBytes) throw tooLarge();
}

function requireType({ headers, rawHeaders }: IncomingMessage, type: RegExp, name: string): void {
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw new Failure('unsupported_media_type', 'The only supported Transfer-Encoding is chunked; send the body unencoded.');
  }
  if ((headers.expect ?? CONTINUE).toLowerCase() !== CONTINUE) {
    throw new Failure('invalid_input', `The only supported Expect header is ${CONTINUE}; leave Expect out.`);
  }
  // With two headers, Node uses the first, but a proxy in front of us may use the second.
  if (isRepeated(rawHeaders, 'content-type')) {
    throw new Failure('unsupported_media_type', 'There are two Content-Type headers; send one.');
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure('unsupported_media_type', 'The body is compressed; send it without Content-Encoding.');
  }
  if (type.test(headers['content-type'] ?? '')) return;
  throw new Failure('unsupported_media_type', `The body must be ${name} in UTF-8; send it with "Content-Type: ${name}".`);
}

const CONTINUE = '100-continue';

function isRepeated(rawHeaders: readonly string[], wanted: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === wanted.length && name.toLowerCase() === wanted) count += 1;
  }
  return count > 1;
}

const tooLarge = (): Failure => new Failure('payload_too_large', 'The body is longer than 1 MiB; send less at a time.');

const tooMuchAtOnce = (): Failure =>
  new Failure('rate_limited', 'Too much data is being sent to this memory at once; try again in a second.', { retryAfter: 1 });

const tooSlow = (): Failure =>
  new Failure('invalid_input', `The body did not arrive within ${CONNECTION_LIMITS.bodyMs / 1000} s; send it without pauses.`);
