/**
 * Fields side by side, each behind its length. Different lists never give the same bytes, so nothing sealed or
 * hashed over a frame can be read as another list (R-SEAL).
 */
export function frame(fields: readonly (string | Uint8Array)[]): Buffer {
  const lengths = fields.map((field) => (typeof field === 'string' ? Buffer.byteLength(field) : field.length));
  let total = 0;
  for (const length of lengths) total += length + (length < 0x80 ? 1 : length < 0x4000 ? 2 : 5);
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  for (const [index, field] of fields.entries()) {
    const length = lengths[index] ?? 0;
    at = writeLength(bytes, at, length);
    if (typeof field === 'string') bytes.write(field, at);
    else bytes.set(field, at);
    at += length;
  }
  return bytes;
}

/** The fields of a frame; throws on bytes that `frame` did not write. */
export function unframe(bytes: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const first = bytes.readUInt8(at);
    const [length, width] =
      first < 0x80 ? [first, 1] : first < 0xc0 ? [bytes.readUInt16BE(at) & 0x3fff, 2] : [bytes.readUInt32BE(at + 1), 5];
    at += width;
    if (at + length > bytes.length) throw new RangeError('A frame ends inside a field.');
    fields.push(bytes.subarray(at, at + length));
    at += length;
  }
  return fields;
}

/** One byte below 128, two below 16 384, else five. Each length has exactly one spelling. */
function writeLength(bytes: Buffer, at: number, length: number): number {
  if (length < 0x80) return bytes.writeUInt8(length, at);
  if (length < 0x4000) return bytes.writeUInt16BE(length | 0x8000, at);
  bytes.writeUInt8(0xc0, at);
  return bytes.writeUInt32BE(length, at + 1);
}
