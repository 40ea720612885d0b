/** Object identifiers of element types. */
const BYTEA = 17;
const INT8 = 20;
const INT2 = 21;
const TEXT = 25;
/** Bytes before the elements: dimensions, whether there are nulls, type, length, lower bound. */
const HEADER_BYTES = 20;

/**
 * Encodes an array in PostgreSQL's binary form. The driver sends a buffer as it is. It would write an array as text, and double the
 * bytes of encrypted text.
 */
function encode(
  type: number,
  count: number,
  bytes: number,
  write: (target: Buffer, at: number, index: number) => number,
): Buffer {
  const target = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  target.writeInt32BE(1, 0);
  target.writeInt32BE(0, 4);
  target.writeInt32BE(type, 8);
  target.writeInt32BE(count, 12);
  target.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  for (let index = 0; index < count; index += 1) at = write(target, at, index);
  return target;
}

export const bigints = (values: readonly number[]): Buffer =>
  encode(INT8, values.length, 12 * values.length, (target, at, index) => {
    const value = values[index] ?? 0;
    const high = Math.floor(value / 2 ** 32);
    target.writeInt32BE(8, at);
    target.writeInt32BE(high, at + 4);
    return target.writeUInt32BE(value - high * 2 ** 32, at + 8);
  });

export const smallints = (values: readonly number[]): Buffer =>
  encode(INT2, values.length, 6 * values.length, (target, at, index) => {
    target.writeInt32BE(2, at);
    return target.writeInt16BE(values[index] ?? 0, at + 4);
  });

export function buffers(values: readonly Uint8Array[]): Buffer {
  const bytes = values.reduce((sum, { length }) => sum + 4 + length, 0);
  return encode(BYTEA, values.length, bytes, (target, at, index) => writeBytes(target, at, values[index]));
}

export function texts(values: readonly string[]): Buffer {
  const encoded = values.map((value) => Buffer.from(value));
  const bytes = encoded.reduce((sum, { length }) => sum + 4 + length, 0);
  return encode(TEXT, encoded.length, bytes, (target, at, index) => writeBytes(target, at, encoded[index]));
}

function writeBytes(target: Buffer, at: number, value: Uint8Array = new Uint8Array()): number {
  target.writeInt32BE(value.length, at);
  target.set(value, at + 4);
  return at + 4 + value.length;
}
