/** A line of a file, by its number; without text where it is too long, or not UTF-8, to be looked at. */
export interface NumberedLine {
  readonly number: number;
  readonly text: string | undefined;
}

const LINE_END = 0x0a;

/** Never holds more than a chunk and a line: a file without line ends is not read into memory. */
export async function* splitLines(chunks: AsyncIterable<Buffer>, most: number): AsyncGenerator<NumberedLine> {
  let number = 1;
  let held: Buffer[] = [];
  let bytes = 0;
  const take = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= most) held.push(part);
  };
  const line = (): NumberedLine => {
    const text = bytes <= most ? decoded(Buffer.concat(held)) : undefined;
    held = [];
    bytes = 0;
    return { number: number++, text };
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_END); end !== -1; end = chunk.indexOf(LINE_END, start)) {
      take(chunk.subarray(start, end));
      start = end + 1;
      yield line();
    }
    take(chunk.subarray(start));
  }
  if (bytes > 0) yield line();
}

/** A byte order mark, as some editors put at the beginning, is left out. */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
