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
export const unframe = (bytes: Buffer): Buffer[] => fieldsOf(bytes, 0, bytes.length, Infinity, subarray);

/** The first so many fields of a frame that lies between two places, as texts. */
export const textsOf = (bytes: Buffer, from: number, to: number, most: number): string[] => fieldsOf(bytes, from, to, most, text);

const subarray = (bytes: Buffer, start: number, end: number): Buffer => bytes.subarray(start, end);
const text = (bytes: Buffer, start: number, end: number): string => (start === end ? '' : bytes.toString('utf8', start, end));

function fieldsOf<Field>(
  bytes: Buffer,
  from: number,
  to: number,
  most: number,
  read: (bytes: Buffer, start: number, end: number) => Field,
): Field[] {
  const fields: Field[] = [];
  let at = from;
  while (at < to && fields.length < most) {
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
    fields.push(read(bytes, start, at));
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
