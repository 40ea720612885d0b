/** The part of WebAssembly that is used here. Node has it, but its types describe browsers. */
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: { scan: Scan } };
};

/** Writes the dot product of the question with each of `count` vectors. All places are offsets in bytes. */
type Scan = (question: number, vectors: number, stride: number, count: number, results: number) => void;

const PAGE_BYTES = 65_536;
/** Bytes that one instruction processes. The length of a vector in memory is a multiple of it. */
const LANE = 16;
/** Vectors that one scan compares. They fit into the processor's cache together with the question. */
export const BLOCK = 128;

/**
 * Compares a question with blocks of vectors, sixteen bytes at once. WebAssembly has instructions for it, and is about twenty times
 * as fast as a loop in JavaScript. The question and one block are copied into its memory.
 */
export class DotProducts {
  readonly dimensions: number;
  /** Bytes from one vector of a block to the next. */
  readonly stride: number;
  readonly #scan: Scan;
  readonly #bytes: Int8Array;
  readonly #vectorsAt: number;
  readonly #resultsAt: number;
  readonly #results: Int32Array;

  constructor(dimensions: number) {
    this.dimensions = dimensions;
    this.stride = Math.ceil(dimensions / LANE) * LANE;
    this.#vectorsAt = this.stride;
    this.#resultsAt = this.#vectorsAt + BLOCK * this.stride;
    const bytes = this.#resultsAt + BLOCK * Int32Array.BYTES_PER_ELEMENT;
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) });
    this.#bytes = new Int8Array(memory.buffer);
    this.#results = new Int32Array(memory.buffer, this.#resultsAt, BLOCK);
    this.#scan = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { m: { memory } }).exports.scan;
  }

  /** Sets the question for the next blocks. */
  ask(values: Int8Array): void {
    this.#bytes.fill(0, 0, this.stride);
    this.#bytes.set(values);
  }

  /** Returns the dot products of the first `count` vectors of a block. They are valid until the next call. */
  of(block: Int8Array, count: number): Int32Array {
    if (count === 0) return this.#results;
    this.#bytes.set(count === BLOCK ? block : block.subarray(0, count * this.stride), this.#vectorsAt);
    this.#scan(0, this.#vectorsAt, this.stride, count, this.#resultsAt);
    return this.#results;
  }

  /** Overwrites the question and the vectors. */
  clear(): void {
    this.#bytes.fill(0);
  }
}

// The rest of this file assembles the module, which in WebAssembly's text format is:
//
//   (func (export "scan") (param $question i32) (param $vector i32) (param $stride i32) (param $count i32) (param $result i32)
//     (local $at i32) (local $end i32) (local $sum v128) (local $a v128) (local $b v128)
//     (loop $vectors
//       (local.set $at (local.get $question))
//       (local.set $end (i32.add (local.get $question) (local.get $stride)))
//       (local.set $sum (v128.const i32x4 0 0 0 0))
//       (loop $lanes
//         (local.set $a (v128.load (local.get $vector)))
//         (local.set $b (v128.load (local.get $at)))
//         (local.set $sum (i32x4.add (i32x4.add (local.get $sum)
//           (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $a)) (i16x8.extend_low_i8x16_s (local.get $b))))
//           (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $a)) (i16x8.extend_high_i8x16_s (local.get $b)))))
//         (local.set $vector (i32.add (local.get $vector) (i32.const 16)))
//         (br_if $lanes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
//       (i32.store (local.get $result) (the sum of the four lanes of $sum))
//       (local.set $result (i32.add (local.get $result) (i32.const 4)))
//       (br_if $vectors (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))

type Code = number | readonly Code[];
const bytesOf = (code: Code): number[] => (typeof code === 'number' ? [code] : code.flatMap(bytesOf));

const [QUESTION, VECTOR, STRIDE, COUNT, RESULT, AT, END, SUM, A, B] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const;
const [I32, V128] = [0x7f, 0x7b];

/** Encodes an unsigned number in LEB128. */
const unsigned = (value: number): Code => (value < 0x80 ? value : [(value & 0x7f) | 0x80, unsigned(value >> 7)]);
function withLength(...code: Code[]): Code {
  const bytes = bytesOf(code);
  return [unsigned(bytes.length), bytes];
}
const section = (id: number, ...code: Code[]): Code => [id, withLength(...code)];
const name = (text: string): Code => withLength([...Buffer.from(text)]);

const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const tee = (local: number): Code => [0x22, local];
const constant = (value: number): Code => [0x41, value];
const [ADD, SUBTRACT, LESS, STORE, END_OF_BLOCK] = [0x6a, 0x6b, 0x49, [0x36, 2, 0], 0x0b];
/** Repeats the instructions while the last of them leaves a number other than 0. */
const loop = (...body: Code[]): Code => [0x03, 0x40, body, 0x0d, 0, END_OF_BLOCK];

const simd = (instruction: number): Code => [0xfd, unsigned(instruction)];
const LOAD = [simd(0), 0, 0];
const ZERO = [simd(12), Array.from({ length: LANE }, () => 0)];
const [EXTEND_LOW, EXTEND_HIGH, ADD_LANES, DOT] = [simd(0x87), simd(0x88), simd(0xae), simd(0xba)];
const lane = (index: number): Code => [get(SUM), simd(27), index];
const addProducts = (extend: Code): Code => [get(A), extend, get(B), extend, DOT, ADD_LANES];

const VECTORS = loop(
  [get(QUESTION), set(AT)],
  [get(QUESTION), get(STRIDE), ADD, set(END)],
  [ZERO, set(SUM)],
  loop(
    [get(VECTOR), LOAD, set(A), get(AT), LOAD, set(B)],
    [get(SUM), addProducts(EXTEND_LOW), addProducts(EXTEND_HIGH), set(SUM)],
    [get(VECTOR), constant(LANE), ADD, set(VECTOR)],
    [get(AT), constant(LANE), ADD, tee(AT), get(END), LESS],
  ),
  [get(RESULT), lane(0), lane(1), ADD, lane(2), ADD, lane(3), ADD, STORE],
  [get(RESULT), constant(4), ADD, set(RESULT)],
  [get(COUNT), constant(1), SUBTRACT, tee(COUNT)],
);
const LOCALS = [2, [2, I32], [3, V128]];

const MODULE = Uint8Array.from(
  bytesOf([
    [0, [...Buffer.from('asm')], 1, 0, 0, 0],
    // The type of the function: five numbers, and no result.
    section(1, 1, 0x60, withLength(I32, I32, I32, I32, I32), 0),
    section(2, 1, name('m'), name('memory'), 2, 0, 1),
    section(3, 1, 0),
    section(7, 1, name('scan'), 0, 0),
    section(10, 1, withLength(LOCALS, VECTORS, END_OF_BLOCK)),
  ]),
);
