import { Failure } from '../../contract/failure.ts';
import type { ImportSource } from '../../contract/import-preview.ts';
import { IMPORT_SOURCES } from '../../contract/limits.ts';
import { UsageError } from './usage-error.ts';

/** More than any memory that people have made by talking; it is held in memory as a whole. */
const MOST_READ = 16 * 1024 * 1024;

export function parseSource(name: string | undefined): ImportSource | undefined {
  if (name === undefined) return undefined;
  const source = IMPORT_SOURCES.find((known) => known === name);
  if (source !== undefined) return source;
  throw new UsageError(`--from must be one of ${IMPORT_SOURCES.join(', ')}.`, 'import');
}

/** How it begins, and all of it. */
export async function peekStart(chunks: AsyncIterable<Buffer>): Promise<{ begins: string; chunks: AsyncIterable<Buffer> }> {
  const reading = chunks[Symbol.asyncIterator]();
  const first = await reading.next();
  const begins = first.done === true ? '' : first.value.subarray(0, 4096).toString();
  return {
    begins,
    chunks: (async function* () {
      for (let next = first; next.done !== true; next = await reading.next()) yield next.value;
    })(),
  };
}

/** Whether another program wrote it: by the name of the file, or as a graph begins. Our own lines begin with a key. */
export const isForeign = (begins: string, file: string): boolean =>
  !/^\uFEFF?\s*\{\s*"key"/.test(begins) &&
  (/\.(?:md|mdc|markdown|txt)$/i.test(file) ||
    /^\uFEFF?\s*[[{][\s[{]*"(?:type"\s*:\s*"(?:entity|relation)"|entities"|relations")/.test(begins));

export async function readText(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MOST_READ)
      throw new Failure('invalid_input', 'It is larger than 16 MiB; split it, and import the parts one after the other.');
    parts.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
  } catch (cause) {
    throw new Failure('invalid_input', 'It is not UTF-8 text; save it as such, and import it again.', { cause });
  }
}
