/** Encodes fields, each after its length. Different lists give different bytes, so a sealed frame has one reading (R-SEAL). */
export function encodeFrame(fields: readonly (string | Uint8Array)[]): Buffer {
  const lengths: number[] = [];
  let total = 0;
  for (const field of fields) {
    const length = typeof field === 'string' ? Buffer.byteLength(field) : field.length;
    lengths.push(length);
    total += length + (length < 0x80 ? 1 : length < 0x4000 ? 2 : 5);
  }
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  let index = 0;
  for (const field of fields) {
    const length = lengths[index] ?? 0;
    index += 1;
    at = writeLength(bytes, at, length);
    if (typeof field !== 'string') bytes.set(field, at);
    else if (length > 0) bytes.write(field, at);
    at += length;
  }
  return bytes;
}

/** Decodes at most `most` fields between two offsets. Throws if a field extends past the end. */
export function decodeFrame(bytes: Buffer, from: number, to: number, most: number): string[] {
  const texts: string[] = [];
  let at = from;
  while (at < to && texts.length < most) {
    const first = bytes[at] ?? 0;
    let start = at + 1;
    let length = first;
    if (first >= 0xc0) {
      length = bytes.readUInt32BE(start);
      start = at + 5;
    } else if (first >= 0x80) {
      length = bytes.readUInt16BE(at) & 0x3fff;
      start = at + 2;
    }
    at = start + length;
    if (at > to) throw new RangeError('A frame ends inside a field.');
    texts.push(length === 0 ? '' : bytes.toString('utf8', start, at));
  }
  return texts;
}

/** One byte below 128, two below 16,384, otherwise five. Each length has exactly one encoding. */
function writeLength(bytes: Buffer, at: number, length: number): number {
  if (length < 0x80) {
    bytes[at] = length;
    return at + 1;
  }
  if (length < 0x4000) return bytes.writeUInt16BE(length | 0x8000, at);
  bytes[at] = 0xc0;
  return bytes.writeUInt32BE(length, at + 1);
}
