/** Room for a number more, with some ahead, so that growing one by one costs little in sum. */
const roomFor = (length: number): number => Math.max(64, length + (length >> 2) + 1);

type Numbers =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/**
 * The same numbers in an array long enough for an index. The array given has none any more: its room is free at once,
 * not when somebody collects it, and a memory that grows does not leave holes of every size behind.
 */
export function growTo<Kind extends Numbers>(numbers: Kind, index: number): Kind {
  if (index < numbers.length) return numbers;
  // Each of these makes its own kind from a buffer; the compiler sees only their union.
  const Same = numbers.constructor as new (buffer: ArrayBuffer) => Kind;
  return new Same(numbers.buffer.transfer(roomFor(index) * numbers.BYTES_PER_ELEMENT));
}
