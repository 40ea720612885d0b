/** A vector of bytes. Each number of the vector is about `scale` times the byte. */
export interface ByteVector {
  readonly scale: number;
  readonly values: Int8Array;
}

const MAX_VALUE = 127;
const SCALE_BYTES = 4;

/** Reduces each number to one byte. The cosine of two vectors changes by less than 0.01. */
export function quantize(vector: Float32Array): ByteVector {
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  // A number that is not finite would make every cosine of the namespace invalid, so such a vector is similar to nothing.
  const scale = Number.isFinite(largest) ? largest / MAX_VALUE : 0;
  const values = new Int8Array(vector.length);
  if (scale > 0) for (let at = 0; at < vector.length; at += 1) values[at] = Math.round((vector[at] ?? 0) / scale);
  return { scale, values };
}

/** Encodes the vectors of a fact's windows. Each takes one byte for each number, after a scale of four bytes. */
export function encodeVectors(vectors: readonly Float32Array[]): Uint8Array {
  const dimensions = vectors[0]?.length ?? 0;
  const bytes = new Uint8Array(vectors.length * (SCALE_BYTES + dimensions));
  const view = new DataView(bytes.buffer);
  for (const [index, vector] of vectors.entries()) {
    const at = index * (SCALE_BYTES + dimensions);
    const { scale, values } = quantize(vector);
    view.setFloat32(at, scale, true);
    bytes.set(new Uint8Array(values.buffer), at + SCALE_BYTES);
  }
  return bytes;
}

/** Returns the vectors of a fact's windows. Returns none if the bytes do not have the length of such vectors. */
export function decodeVectors(bytes: Uint8Array, dimensions: number): ByteVector[] {
  const size = SCALE_BYTES + dimensions;
  if (bytes.length % size !== 0) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / size }, (_, index) => {
    const at = index * size;
    const values = new Int8Array(bytes.buffer, bytes.byteOffset + at + SCALE_BYTES, dimensions);
    return { scale: view.getFloat32(at, true), values };
  });
}
