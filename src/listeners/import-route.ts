import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { Failure } from '../contract/failure.ts';
import { lazy, type SchemaOutput } from '../contract/lazy.ts';
import { IMPORT_REQUEST } from '../contract/limits.ts';
import { ImportReceipt } from '../contract/transfer.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { Clock } from '../core/time/clock.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { createQueryReader } from './query.ts';
import { requireNdjson, isWithinDepth, bodyFailureOf } from './request-body.ts';
import { API_PATH } from './rest-routes.ts';
import type { Exchange, Route } from './router.ts';
import type { StreamRegistry } from './stream-registry.ts';

const BATCH_BYTES = CONNECTION_LIMITS.bodyBytes;
const LINE_FEED = 0x0a;
/** A report that is longer than what was sent is of no use to anybody. */
const MOST_ERRORS = 1000;

export const ImportReport = lazy(() =>
  ImportReceipt().extend({
    more_errors: z.int().min(1).exactOptional().describe(`Refused lines beyond the first ${MOST_ERRORS}.`),
  }),
);
type ImportTotal = SchemaOutput<typeof ImportReport>;

interface Deps {
  readonly perform: Perform;
  readonly clock: Clock;
  readonly streams: StreamRegistry;
}

/** Facts as lines, as many as there are: read, checked and kept a batch at a time (R-REST-09). */
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
      // Checks what was asked, before anything of the body is taken.
      const total: ImportTotal = await deps.perform(exchange.caller, 'import', { ...options, lines: [] });
      for await (const batch of batches(linesOf(exchange, deps.clock))) await importBatch(batch, total);
      return total;

      async function importBatch({ first, lines, errors }: Batch, sum: ImportTotal): Promise<void> {
        const receipt = await deps.perform(exchange.caller, 'import', { ...options, lines, first_line: first });
        sum.created += receipt.created;
        sum.updated += receipt.updated;
        sum.unchanged += receipt.unchanged;
        sum.dropped += receipt.dropped;
        if (receipt.written) sum.written = { ...receipt.written, since: sum.written?.since ?? receipt.written.since };
        const all = [...receipt.errors, ...errors].toSorted((one, other) => one.line - other.line);
        const told = all.slice(0, MOST_ERRORS - sum.errors.length);
        sum.errors.push(...told);
        if (told.length < all.length) sum.more_errors = (sum.more_errors ?? 0) + all.length - told.length;
      }
    },
  };
};

interface Batch {
  /** The number of the first line. */
  readonly first: number;
  readonly lines: string[];
  readonly errors: ImportTotal['errors'];
}

/** As many lines as one request of the operation takes. A line that is no text has its error already, and stands for nothing. */
async function* batches(lines: AsyncIterable<Buffer>): AsyncGenerator<Batch> {
  let batch: Batch = { first: 1, lines: [], errors: [] };
  let bytes = 0;
  try {
    for await (const line of lines) {
      if (batch.lines.length === IMPORT_REQUEST.lines || bytes + line.length > BATCH_BYTES) {
        yield batch;
        batch = { first: batch.first + batch.lines.length, lines: [], errors: [] };
        bytes = 0;
      }
      const message = wrongWith(line);
      if (message !== undefined) batch.errors.push({ line: batch.first + batch.lines.length, message });
      batch.lines.push(message === undefined ? line.toString() : '');
      bytes += line.length;
    }
  } catch (error) {
    // The whole lines that came before the fault are imported, as those of earlier batches were.
    if (batch.lines.length > 0) yield batch;
    throw error;
  }
  if (batch.lines.length > 0) yield batch;
}

function wrongWith(line: Buffer): string | undefined {
  if (!isUtf8(line)) return 'The line is not valid UTF-8; encode it so.';
  return isWithinDepth(line.toString('latin1'))
    ? undefined
    : `The line is nested deeper than ${CONNECTION_LIMITS.jsonDepth} levels; flatten it.`;
}

/** A connection that is cut yields no last line: half of a fact may look like a whole one. */
async function* linesOf({ request, response }: Exchange, clock: Clock): AsyncGenerator<Buffer> {
  if (request.headers.expect !== undefined) response.writeContinue();
  let begun: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    begun.push(part);
    length += part.length;
    if (length > CONNECTION_LIMITS.bodyBytes)
      throw new Failure('payload_too_large', 'A line is longer than 1 MiB; a fact takes far less.');
  };
  const take = (): Buffer => {
    const line = begun.length === 1 && begun[0] ? begun[0] : Buffer.concat(begun);
    [begun, length] = [[], 0];
    return line;
  };
  for await (const chunk of chunksOf(request, clock)) {
    let from = 0;
    for (let to = chunk.indexOf(LINE_FEED); to !== -1; to = chunk.indexOf(LINE_FEED, from)) {
      add(chunk.subarray(from, to));
      yield take();
      from = to + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (length > 0) yield take();
}

/** While we wait for bytes, enough of them must come in time; while we work on them, nobody has to send any. */
async function* chunksOf(request: IncomingMessage, clock: Clock): AsyncGenerator<Buffer> {
  if (bodyFailureOf(request)) throw cutOff();
  // What is left when we stop is read by whoever refuses it.
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let patience: number = CONNECTION_LIMITS.progressMs;
  let waited = 0;
  let bytes = 0;
  try {
    for (;;) {
      const since = clock.steady();
      const left = CONNECTION_LIMITS.importWaitMs - waited;
      const { done, value } = await within(
        chunks.next(),
        clock,
        left < patience ? { ms: left, why: tooSlow } : { ms: patience, why: idle },
      );
      if (done === true) return;
      bytes += value.length;
      patience -= clock.steady() - since;
      waited += clock.steady() - since;
      if (bytes >= CONNECTION_LIMITS.progressBytes || value.includes(LINE_FEED))
        [patience, bytes] = [CONNECTION_LIMITS.progressMs, 0];
      yield value;
    }
  } catch (error) {
    if (error instanceof Failure && !bodyFailureOf(request)) throw error;
    throw cutOff();
  } finally {
    chunks.return?.().catch(() => undefined);
  }
}

interface Deadline {
  readonly ms: number;
  readonly why: () => Failure;
}

async function within<T>(coming: Promise<T>, clock: Clock, { ms, why }: Deadline): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  using _late = clock.after(Math.max(ms, 0), () => reject(why()));
  coming.catch(() => undefined);
  return await Promise.race([coming, promise]);
}

const idle = (): Failure =>
  new Failure('invalid_input', `Nothing came for ${CONNECTION_LIMITS.progressMs / 1000} s; send the lines without a pause.`);

const tooSlow = (): Failure =>
  new Failure(
    'invalid_input',
    `This import waited ${CONNECTION_LIMITS.importWaitMs / 60_000} minutes for its lines; those that came are imported. Send the rest in another import.`,
  );

const cutOff = (): Failure =>
  new Failure('invalid_input', 'The connection ended within the lines; import them again, those that are there stay.');
