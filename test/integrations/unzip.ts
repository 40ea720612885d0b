import { crc32 } from 'node:zlib';

const END = 0x06054b50;
const PLACE = 0x02014b50;

/** Reads the files of an uncompressed zip. An inconsistency fails the test. */
export function unzip(bytes: Buffer): Record<string, Buffer> {
  const end = bytes.length - 22;
  const files: Record<string, Buffer> = {};
  let at = bytes.readUInt32LE(end + 16);
  if (bytes.readUInt32LE(end) !== END) throw new Error('This zip has no end.');
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left -= 1) {
    if (bytes.readUInt32LE(at) !== PLACE) throw new Error('The directory of this zip is broken.');
    const [sum, size, nameLength] = [bytes.readUInt32LE(at + 16), bytes.readUInt32LE(at + 24), bytes.readUInt16LE(at + 28)];
    const name = bytes.toString('utf8', at + 46, at + 46 + nameLength);
    const body = bytes.readUInt32LE(at + 42) + 30 + nameLength;
    const file = bytes.subarray(body, body + size);
    if (crc32(file) !== sum) throw new Error(`${name} is not what was packed.`);
    files[name] = file;
    at += 46 + nameLength;
  }
  if (at !== end) throw new Error('This zip holds more than it names.');
  return files;
}
