import { closeSync, constants, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';

/** For whoever writes into a pipe to open it. */
const WRITER_MS = 3000;
const LOOK_MS = 50;
const BLOCK = 64 * 1024;

const NOBODY = 'Nobody writes into this pipe; start what writes into it, and import again, or name a file.';

/** A file as it is read, or what comes through a pipe that has a name, as from `<(gunzip -c facts.ndjson.gz)`. */
export async function* readInputFile(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    if (statSync(file).isFIFO()) yield* throughPipe(file, signal);
    else for await (const chunk of createReadStream(file, { signal })) yield chunk as Buffer;
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('invalid_input', 'The file cannot be read; check its path and its permissions.', { cause });
  }
}

async function* throughPipe(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  // Else to open it would wait for a writer without end, and Ctrl+C would not be heard.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  let first: Buffer;
  try {
    first = await beginning(fd, signal);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  if (first.length > 0) yield first;
  for await (const chunk of addAbortSignal(signal, new Socket({ fd, readable: true, writable: false }))) yield chunk as Buffer;
}

/** What is in it by now, maybe nothing, as soon as somebody has it open for writing. */
async function beginning(fd: number, signal: AbortSignal): Promise<Buffer> {
  const buffer = Buffer.alloc(BLOCK);
  for (let waited = 0; waited <= WRITER_MS; waited += LOOK_MS) {
    const bytes = bytesIn(fd, buffer);
    if (bytes === undefined) return Buffer.alloc(0);
    if (bytes > 0) return buffer.subarray(0, bytes);
    await wait(LOOK_MS, undefined, { signal });
  }
  throw new Failure('invalid_input', NOBODY);
}

/** Undefined while there is a writer who has not written yet; 0 without one. */
function bytesIn(fd: number, buffer: Buffer): number | undefined {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return undefined;
    throw error;
  }
}
