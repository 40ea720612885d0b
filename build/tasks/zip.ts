import { crc32 } from 'node:zlib';

/** The earliest date of the zip format, used where a zip records no time. */
const FIRST_DAY = 0x0021;
const VERSION = 20;
/** Host system Unix, so that the attributes are a mode: a regular file that everyone can read. */
const UNIX = 3 << 8;
const MODE = 0o100644;
const UTF8_NAMES = 0x0800;

/** Creates an uncompressed zip. The same files always give the same bytes. */
export function zip(files: Readonly<Record<string, Buffer>>): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [path, bytes] of Object.entries(files)) {
    const name = Buffer.from(path);
    const told = facts(name, bytes);
    const body = Buffer.concat([numbers([4, 0x04034b50], ...told), name, bytes]);
    const place = numbers([4, 0x02014b50], [2, UNIX | VERSION], ...told, [2, 0], [2, 0], [2, 0], [4, MODE * 0x10000], [4, at]);
    bodies.push(body);
    directory.push(place, name);
    at += body.length;
  }
  const places = Buffer.concat(directory);
  const count = bodies.length;
  return Buffer.concat([
    ...bodies,
    places,
    numbers([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, places.length], [4, at], [2, 0]),
  ]);
}

type Field = readonly [bytes: 2 | 4, value: number];

/** The fields that a zip stores twice for each file: before the file and in the central directory. */
const facts = (name: Buffer, bytes: Buffer): Field[] => [
  [2, VERSION],
  [2, UTF8_NAMES],
  // Stored without compression, because compressed bytes differ between zlib versions.
  [2, 0],
  [2, 0],
  [2, FIRST_DAY],
  [4, crc32(bytes)],
  [4, bytes.length],
  [4, bytes.length],
  [2, name.length],
  [2, 0],
];

function numbers(...fields: readonly Field[]): Buffer {
  const buffer = Buffer.alloc(fields.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of fields) at = buffer.writeUIntLE(value, at, bytes);
  return buffer;
}
