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

interface PendingBody {
  readonly subject: string;
  readonly bytes: ByteBuffer;
  fail(failure: Failure): void;
}

/** Reads JSON request bodies. Checks the headers before reading, and limits size and time while reading. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #pending = new Set<PendingBody>();
  /** Bytes of all pending bodies. */
  #receivedBytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the parsed body, or `{}` if the request has no body. While the body is received, its bytes are counted for `subject`.
   */
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
      this.#receivedBytes -= bytes.length;
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
      this.#receivedBytes += chunk.length;
      if (bytes.length > CONNECTION_LIMITS.bodyBytes) fail(tooLarge());
      this.#limitReceivedBytes();
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
    // If the client disconnected while its token was being verified, no event follows.
    if (bodyFailureOf(request)) onCut();
    return promise;
  }

  /**
   * If too many bytes are being received, refuses the longest body of the subject that sends the most bytes, to protect other
   * subjects.
   */
  #limitReceivedBytes(): void {
    while (this.#receivedBytes > CONNECTION_LIMITS.bodyTotalBytes) {
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

export function requireNdjson(request: IncomingMessage): void {
  requireType(request, NDJSON_TYPE, 'application/x-ndjson');
}

/** Parses UTF-8 JSON of limited depth. Errors never include the parser's message, because that message quotes the input. */
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

/**
 * Whether the JSON text is nested at most `jsonDepth` levels deep. Checked before parsing, because deep nesting could overflow
 * the stack.
 */
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

/** Marks a request body whose remaining bytes are not valid HTTP, so that a current or later read of the body fails. */
export function markBodyBroken(request: IncomingMessage): void {
  brokenRequests.add(request);
  if (request.listenerCount('error') > 0) request.emit('error', malformed());
}

/** Returns the failure if it is already known that the rest of the body cannot be read. */
export const bodyFailureOf = (request: IncomingMessage): Failure | undefined =>
  brokenRequests.has(request) ? malformed() : request.destroyed ? cutOff() : undefined;

const malformed = (): Failure =>
  new Failure('invalid_input', 'The body does not match the headers of the request; use an HTTP library to send it.');

const cutOff = (): Failure =>
  new Failure('invalid_input', 'The connection closed before the body was complete; send the request again.');

/** Whether the headers announce a body, with or without its length. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Refuses a request that has a body. Otherwise Node would read the unused body to its end, however long it is. */
export function rejectBody(request: IncomingMessage): void {
  if (hasBody(request)) throw new Failure('invalid_input', 'This request must not have a body; send the fields in the query.');
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
  // Two Content-Type headers are refused: Node uses the first, but a proxy in front of this server could use the second.
  if (isRepeated(rawHeaders, 'content-type')) {
    throw new Failure('unsupported_media_type', 'There are two Content-Type headers; send exactly one.');
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

const tooLarge = (): Failure =>
  new Failure('payload_too_large', 'The body is longer than 1 MiB; split it into several requests.');

const tooMuchAtOnce = (): Failure =>
  new Failure('rate_limited', 'Too much data is being sent to Helmdeck Memory at the same time; try again in a second.', {
    retryAfter: 1,
  });

const tooSlow = (): Failure =>
  new Failure('invalid_input', `The body did not arrive within ${CONNECTION_LIMITS.bodyMs / 1000} s; send it without pauses.`);
