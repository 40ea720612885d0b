/**
 * Bytes that come in pieces, in one place. Kept as they come, pieces of a byte each would take some four hundred times as much memory as
 * what was agreed on.
 */
export class ByteBuffer {
  #place = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#place.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#place.length));
      this.#place.copy(larger, 0, 0, this.#length);
      this.#place = larger;
    }
    piece.copy(this.#place, this.#length);
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#place.subarray(0, this.#length);
  }
}
