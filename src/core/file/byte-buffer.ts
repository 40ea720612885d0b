/**
 * Joins received chunks in one growing buffer. A list of one-byte chunks would take about 400 times the RAM of their bytes, and
 * so evade the limit for a request body.
 */
export class ByteBuffer {
  #buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
