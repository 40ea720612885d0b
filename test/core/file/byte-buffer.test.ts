import { expect, test } from 'vitest';
import { ByteBuffer } from '../../../src/core/file/byte-buffer.ts';

test('joins chunks of any size in order', () => {
  const bytes = Buffer.from('Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. '.repeat(50));
  for (const size of [1, 7, 64, bytes.length]) {
    const gathered = new ByteBuffer();
    for (let at = 0; at < bytes.length; at += size) gathered.append(bytes.subarray(at, at + size));
    expect(gathered.length).toBe(bytes.length);
    expect(gathered.bytes().equals(bytes)).toBe(true);
  }
  expect(new ByteBuffer().bytes()).toHaveLength(0);
});

test('a million chunks of one byte take little more memory than a million bytes', () => {
  const gathered = new ByteBuffer();
  for (let at = 0; at < 1_000_000; at += 1) gathered.append(Buffer.from([at % 256]));
  expect(gathered.length).toBe(1_000_000);
  expect(gathered.bytes().buffer.byteLength).toBeLessThan(2_100_000);
});

test('keeps no reference to a chunk', () => {
  const gathered = new ByteBuffer();
  const piece = Buffer.from('mine');
  gathered.append(piece);
  piece.fill('x');
  expect(gathered.bytes().toString()).toBe('mine');
});
