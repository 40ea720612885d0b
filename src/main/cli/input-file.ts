import { closeSync, constants, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { errorCodeOf } from '../../core/file/files.ts';

/** Milliseconds to wait for another process to open a named pipe for writing. */
const WRITER_MS = 3000;
const POLL_MS = 50;
const BLOCK = 64 * 1024;

/** Streams a file or a named pipe, such as `<(gunzip -c facts.ndjson.gz)`. */
export async function* readInputFile(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    if (statSync(file).isFIFO()) yield* readPipe(file, signal);
    else for await (const chunk of createReadStream(file, { signal })) yield chunk as Buffer;
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('invalid_input', 'The file cannot be read. Check its path and permissions.', { cause });
  }
}

async function* readPipe(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  // Open without blocking, because a blocking open would wait forever for a writer and would ignore Ctrl+C.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  let first: Buffer;
  try {
    first = await readStart(fd, signal);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  if (first.length > 0) yield first;
  for await (const chunk of addAbortSignal(signal, new Socket({ fd, readable: true, writable: false }))) yield chunk as Buffer;
}

/**
 * Waits until a writer opens the pipe. Returns the first bytes, or an empty buffer if the writer has not written anything yet.
 */
async function readStart(fd: number, signal: AbortSignal): Promise<Buffer> {
  const buffer = Buffer.alloc(BLOCK);
  for (let waited = 0; waited <= WRITER_MS; waited += POLL_MS) {
    const bytes = tryRead(fd, buffer);
    if (bytes === undefined) return Buffer.alloc(0);
    if (bytes > 0) return buffer.subarray(0, bytes);
    await wait(POLL_MS, undefined, { signal });
  }
  throw new Failure('invalid_input', 'No process is writing to this pipe. Start the writer and import again, or name a file.');
}

/** Reads from the pipe. Returns the number of bytes: 0 without a writer, undefined if the writer has sent no data yet. */
function tryRead(fd: number, buffer: Buffer): number | undefined {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if (errorCodeOf(error) === 'EAGAIN') return undefined;
    throw error;
  }
}
