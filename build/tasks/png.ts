import { crc32, deflateSync } from 'node:zlib';

/** Red, green, blue and alpha, each from 0 to 1. */
export type Paint = readonly [red: number, green: number, blue: number, cover: number];

const FINE = 4;

/** Renders a square PNG. `paint` returns the colour at a point with coordinates from 0 to 1. Each pixel averages 16 samples. */
export function png(size: number, paint: (x: number, y: number) => Paint | undefined): Buffer {
  const rows = Buffer.alloc(size * (1 + size * 4));
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      rows.set(pixel(size, row, column, paint), row * (1 + size * 4) + 1 + column * 4);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  // 8 bits each for red, green, blue and alpha.
  head.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function pixel(size: number, row: number, column: number, paint: (x: number, y: number) => Paint | undefined): number[] {
  const sum = [0, 0, 0, 0];
  for (let fine = 0; fine < FINE * FINE; fine += 1) {
    const x = (column + ((fine % FINE) + 0.5) / FINE) / size;
    const y = (row + (Math.floor(fine / FINE) + 0.5) / FINE) / size;
    const [red, green, blue, cover] = paint(x, y) ?? [0, 0, 0, 0];
    for (const [index, part] of [red * cover, green * cover, blue * cover, cover].entries())
      sum[index] = (sum[index] ?? 0) + part;
  }
  const [red = 0, green = 0, blue = 0, cover = 0] = sum;
  if (cover === 0) return [0, 0, 0, 0];
  return [red / cover, green / cover, blue / cover, cover / FINE ** 2].map((part) => Math.round(part * 255));
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body), body.length + 4);
  return whole;
}
