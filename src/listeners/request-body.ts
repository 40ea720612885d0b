import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../contract/failure.ts';
import { ByteBuffer } from '../core/file/byte-buffer.ts';
import type { Clock } from '../core/time/clock.ts';
import { CONNECTION_LIMITS } from './limits.ts';

const CHARSET = String.raw`(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*$`;
const JSON_TYPE = new RegExp(`^application/json${CHARSET}`, 'i');
const NDJSON_TYPE = new RegExp(`^application/x-ndjson${CHARSET}`, 'i');

/** One body on its way. */
interface Coming {
  readonly whose: string;
  readonly body: ByteBuffer;
  fail(failure: Failure): void;
}

/** Reads bodies, and refuses before it reads: nothing is kept that is too long, too slow or in a form nobody asked for. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #coming = new Set<Coming>();
  #held = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the body says. No body says nothing: `{}`. `whose` room it takes is told by its subject. */
  async readJson(request: IncomingMessage, response: ServerResponse, whose: string): Promise<unknown> {
    requireLength(request);
    if (!hasBody(request)) {
      if (request.headers['content-type'] !== undefined) requireType(request, JSON_TYPE, 'application/json');
      return {};
    }
    requireType(request, JSON_TYPE, 'application/json');
    const bytes = await this.#read(request, response, whose);
    return bytes.length === 0 ? {} : parseJson(bytes);
  }

  #read(request: IncomingMessage, response: ServerResponse, whose: string): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const body = new ByteBuffer();
    const done = (): void => {
      this.#held -= body.length;
      this.#coming.delete(coming);
      late[Symbol.dispose]();
      request.off('data', take).off('end', end).off('close', cut).off('error', cut);
    };
    const fail = (failure: Failure): void => {
      done();
      reject(failure);
    };
    const coming: Coming = { whose, body, fail };
    const take = (chunk: Buffer): void => {
      body.append(chunk);
      this.#held += chunk.length;
      if (body.length > CONNECTION_LIMITS.bodyBytes) fail(tooLarge());
      this.#makeRoom();
    };
    const end = (): void => {
      done();
      resolve(body.bytes());
    };
    const cut = (): void => fail(bodyFailureOf(request) ?? cutOff());
    const late = this.#clock.after(CONNECTION_LIMITS.bodyMs, () => fail(tooSlow()));
    if (request.headers.expect !== undefined) response.writeContinue();
    request.on('data', take).on('end', end).on('close', cut).on('error', cut);
    this.#coming.add(coming);
    // It may have gone while we found out who it is from.
    if (bodyFailureOf(request)) cut();
    return promise;
  }

  /** Whoever sends the most gives up the longest of theirs: one who fills all the room is refused, and others notice nothing. */
  #makeRoom(): void {
    while (this.#held > CONNECTION_LIMITS.bodyTotalBytes) {
      const sums = new Map<string, number>();
      for (const { whose, body } of this.#coming) sums.set(whose, (sums.get(whose) ?? 0) + body.length);
      const most = Math.max(...sums.values());
      const theirs = [...this.#coming].filter(({ whose }) => sums.get(whose) === most);
      const [longest] = theirs.toSorted((one, other) => other.body.length - one.body.length);
      if (!longest) return;
      longest.fail(tooMuchAtOnce());
    }
  }
}

/** For import alone. */
export function requireNdjson(request: IncomingMessage): void {
  requireType(request, NDJSON_TYPE, 'application/x-ndjson');
}

/** JSON in UTF-8 that is not nested too deep. What it holds is never repeated: a syntax error would quote it. */
function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Failure('invalid_input', 'The body is not valid UTF-8; encode it so.');
  const text = bytes.toString();
  if (!isWithinDepth(text))
    throw new Failure('invalid_input', `The body is nested deeper than ${CONNECTION_LIMITS.jsonDepth} levels; flatten it.`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure('invalid_input', 'The body is not JSON; send one JSON object.');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Looked at once, from left to right, before anything that might go down as deep as it is told. */
export function isWithinDepth(text: string): boolean {
  if (text.length <= CONNECTION_LIMITS.jsonDepth) return true;
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) quoted = !quoted;
    else if (code === BACKSLASH && quoted) index += 1;
    else if (quoted) continue;
    else if (OPENING.has(code)) {
      depth += 1;
      if (depth > CONNECTION_LIMITS.jsonDepth) return false;
    } else if (CLOSING.has(code)) depth -= 1;
  }
  return true;
}

const broken = new WeakSet<IncomingMessage>();

/** What is left of this body cannot be read; whoever reads it, or will, hears so. */
export function markBodyBroken(request: IncomingMessage): void {
  broken.add(request);
  if (request.listenerCount('error') > 0) request.emit('error', badlySent());
}

/** Why a body cannot be read to its end, where that is known. */
export const bodyFailureOf = (request: IncomingMessage): Failure | undefined =>
  broken.has(request) ? badlySent() : request.destroyed ? cutOff() : undefined;

const badlySent = (): Failure =>
  new Failure('invalid_input', 'The body is not sent as its headers say; use an HTTP library to send it.');

const cutOff = (): Failure => new Failure('invalid_input', 'The connection ended within the body; send the request again.');

/** A body is on its way, told or not. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Node would read it to its end without a limit, however long it is. */
export function rejectBody(request: IncomingMessage): void {
  if (hasBody(request)) throw new Failure('invalid_input', 'This takes no body; send what you mean in the address.');
}

function requireLength({ headers }: IncomingMessage): void {
  if (Number(headers['content-length'] ?? 0) > CONNECTION_LIMITS.bodyBytes) throw tooLarge();
}

function requireType({ headers, rawHeaders }: IncomingMessage, type: RegExp, name: string): void {
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw new Failure('unsupported_media_type', 'The body has a Transfer-Encoding other than chunked; send it as it is.');
  }
  if ((headers.expect ?? CONTINUE).toLowerCase() !== CONTINUE) {
    throw new Failure('invalid_input', `Nothing can be expected here but ${CONTINUE}; leave the header Expect out.`);
  }
  // Node keeps the first of two, and whoever stands before us may keep the other.
  if (isTwice(rawHeaders, 'content-type')) {
    throw new Failure('unsupported_media_type', 'There are two Content-Type headers; send one.');
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure('unsupported_media_type', 'The body is compressed; send it as it is, without Content-Encoding.');
  }
  if (type.test(headers['content-type'] ?? '')) return;
  throw new Failure('unsupported_media_type', `The body must be ${name} in UTF-8; send it with "Content-Type: ${name}".`);
}

const CONTINUE = '100-continue';

function isTwice(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const known = rawHeaders[index] ?? '';
    if (known.length === name.length && known.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

const tooLarge = (): Failure => new Failure('payload_too_large', 'The body is longer than 1 MiB; send less at a time.');

const tooMuchAtOnce = (): Failure =>
  new Failure('rate_limited', 'Too much is being sent to this memory at once; try again in a second.', { retryAfter: 1 });

const tooSlow = (): Failure =>
  new Failure('invalid_input', `The body did not arrive within ${CONNECTION_LIMITS.bodyMs / 1000} s; send it without a pause.`);
