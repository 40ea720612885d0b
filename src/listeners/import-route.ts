import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { HeldReceipt, heldReceiptOf } from '../contract/inbox.ts';
import { IMPORT_REQUEST } from '../contract/limits.ts';
import { lazy, type SchemaOutput } from '../contract/schema.ts';
import { ImportReceipt } from '../contract/transfer.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { Clock } from '../core/time/clock.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { requireNdjson, isWithinDepth, bodyFailureOf } from './request-body.ts';
import { API_PATH, createQueryReader } from './rest-routes.ts';
import type { Exchange, Route } from './route.ts';
import type { StreamRegistry } from './stream-registry.ts';

const BATCH_BYTES = CONNECTION_LIMITS.bodyBytes;
const LINE_FEED = 0x0a;
const MAX_ERRORS = 1000;

export const ImportReport = lazy(() =>
  ImportReceipt().extend({
    more_errors: z
      .int()
      .min(1)
      .exactOptional()
      .describe(`Number of further rejected lines. Only the first ${MAX_ERRORS} are listed in \`errors\`.`),
    note: z.string().exactOptional().describe('Present if lines wait in the Inbox: what the client should know and do.'),
    held: z
      .array(HeldReceipt().pick({ id: true, lines: true, expires_at: true }))
      .exactOptional()
      .describe("Items of the Inbox in which lines wait for the owner's approval. Absent unless the client is quarantined."),
  }),
);
type ImportReport = SchemaOutput<typeof ImportReport>;

interface Deps {
  readonly perform: Perform;
  readonly clock: Clock;
  readonly streams: StreamRegistry;
}

/** Imports any number of facts, one JSON object per line, in batches (R-REST-09). */
export const importRoute = (deps: Deps): Route => {
  const read = createQueryReader({ properties: { dry_run: { type: 'boolean' } } });
  return {
    method: 'POST',
    path: `${API_PATH}/memory/import`,
    transport: 'rest',
    operation: 'import',
    async handle(exchange) {
      const options = read(exchange.query);
      requireNdjson(exchange.request);
      using _open = deps.streams.open(exchange, { end: () => exchange.request.destroy() });
      // Import an empty list first, to check the caller's scope and the options before reading the body.
      const report: ImportReport = await deps.perform(exchange.caller, 'import', { ...options, lines: [] });
      for await (const batch of batches(linesOf(exchange, deps.clock))) await importBatch(batch);
      return report;

      async function importBatch({ firstLine, lines, errors }: Batch): Promise<void> {
        const receipt = await deps.perform(exchange.caller, 'import', { ...options, lines, first_line: firstLine });
        const waiting = heldReceiptOf(receipt);
        if (waiting) addHeld(waiting);
        else addCounts(receipt);
        addErrors([...(receipt.errors ?? []), ...errors]);
      }

      function addHeld({ id, lines = 0, expires_at, note }: HeldReceipt): void {
        report.note = note;
        report.held = [...(report.held ?? []), { id, lines, expires_at }];
      }

      function addCounts(receipt: ImportReceipt): void {
        report.created += receipt.created;
        report.updated += receipt.updated;
        report.unchanged += receipt.unchanged;
        report.dropped += receipt.dropped;
        if (receipt.written) report.written = { ...receipt.written, since: report.written?.since ?? receipt.written.since };
      }

      function addErrors(rejected: ImportReport['errors']): void {
        const all = rejected.toSorted((one, other) => one.line - other.line);
        const reported = all.slice(0, MAX_ERRORS - report.errors.length);
        report.errors.push(...reported);
        if (reported.length < all.length) report.more_errors = (report.more_errors ?? 0) + all.length - reported.length;
      }
    },
  };
};

interface Batch {
  readonly firstLine: number;
  readonly lines: string[];
  readonly errors: ImportReport['errors'];
}

/**
 * Groups lines into batches that the import operation accepts. An invalid line becomes an empty line, so that later lines keep
 * their numbers.
 */
async function* batches(lines: AsyncIterable<Buffer>): AsyncGenerator<Batch> {
  let batch: Batch = { firstLine: 1, lines: [], errors: [] };
  let bytes = 0;
  try {
    for await (const line of lines) {
      if (batch.lines.length === IMPORT_REQUEST.lines || bytes + line.length > BATCH_BYTES) {
        yield batch;
        batch = { firstLine: batch.firstLine + batch.lines.length, lines: [], errors: [] };
        bytes = 0;
      }
      const message = lineErrorOf(line);
      if (message !== undefined) batch.errors.push({ line: batch.firstLine + batch.lines.length, message });
      batch.lines.push(message === undefined ? line.toString() : '');
      bytes += line.length;
    }
  } catch (error) {
    // Import all complete lines that arrived before the error. Earlier batches are already imported.
    if (batch.lines.length > 0) yield batch;
    throw error;
  }
  if (batch.lines.length > 0) yield batch;
}

function lineErrorOf(line: Buffer): string | undefined {
  if (!isUtf8(line)) return 'The line is not valid UTF-8; encode it as UTF-8.';
  return isWithinDepth(line.toString('latin1'))
    ? undefined
    : `The line is nested deeper than ${CONNECTION_LIMITS.jsonDepth} levels; flatten it.`;
}

/**
 * Yields the lines of the request body. If the connection is cut, the last line is dropped, because a truncated fact can look
 * complete.
 */
async function* linesOf({ request, response }: Exchange, clock: Clock): AsyncGenerator<Buffer> {
  if (request.headers.expect !== undefined) response.writeContinue();
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    parts.push(part);
    length += part.length;
    if (length > CONNECTION_LIMITS.bodyBytes)
      throw new Failure('payload_too_large', 'A line is longer than 1 MiB, so it cannot be a fact; check the file.');
  };
  const finishLine = (): Buffer => {
    const line = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    [parts, length] = [[], 0];
    return line;
  };
  for await (const chunk of chunksOf(request, clock)) {
    let from = 0;
    for (let to = chunk.indexOf(LINE_FEED); to !== -1; to = chunk.indexOf(LINE_FEED, from)) {
      add(chunk.subarray(from, to));
      yield finishLine();
      from = to + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (length > 0) yield finishLine();
}

/** Yields the chunks of the request body. Only the time spent waiting for chunks is limited, not the time spent importing. */
async function* chunksOf(request: IncomingMessage, clock: Clock): AsyncGenerator<Buffer> {
  if (bodyFailureOf(request)) throw cutOff();
  // Do not destroy the request after an error: `sendFailure` reads and discards the rest of the body.
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let timeLeft: number = CONNECTION_LIMITS.progressMs;
  let waited = 0;
  let bytes = 0;
  try {
    for (;;) {
      const since = clock.steady();
      const totalLeft = CONNECTION_LIMITS.importWaitMs - waited;
      const { done, value } = await withTimeout(
        chunks.next(),
        clock,
        totalLeft < timeLeft ? { ms: totalLeft, failure: tooSlow } : { ms: timeLeft, failure: idle },
      );
      if (done === true) return;
      bytes += value.length;
      timeLeft -= clock.steady() - since;
      waited += clock.steady() - since;
      if (bytes >= CONNECTION_LIMITS.progressBytes || value.includes(LINE_FEED))
        [timeLeft, bytes] = [CONNECTION_LIMITS.progressMs, 0];
      yield value;
    }
  } catch (error) {
    if (error instanceof Failure && !bodyFailureOf(request)) throw error;
    throw cutOff();
  } finally {
    chunks.return?.().catch(() => undefined);
  }
}

interface Timeout {
  readonly ms: number;
  readonly failure: () => Failure;
}

async function withTimeout<T>(pending: Promise<T>, clock: Clock, { ms, failure }: Timeout): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  using _timer = clock.after(Math.max(ms, 0), () => reject(failure()));
  pending.catch(() => undefined);
  return await Promise.race([pending, promise]);
}

const idle = (): Failure =>
  new Failure('invalid_input', `No data arrived for ${CONNECTION_LIMITS.progressMs / 1000} s; send the lines without pauses.`);

const tooSlow = (): Failure =>
  new Failure(
    'invalid_input',
    `This import waited for lines for ${CONNECTION_LIMITS.importWaitMs / 60_000} minutes in total, so it was stopped. The lines that arrived are imported; send the rest in another import.`,
  );

const cutOff = (): Failure =>
  new Failure(
    'invalid_input',
    'The connection closed during the import; import all lines again. Facts that are already stored are not duplicated.',
  );
