import type { EntryRow } from '../connection.ts';

/** Bytes of four numbers and three lengths, before the category. */
const HEADER_BYTES = 4 * 8 + 3 * 4;
/** The length of a text that was not read. */
const NOT_READ = -1;

/** A row. The text of rows beyond the size of a page is not read. */
export type PackedRow = Omit<EntryRow, 'sealed'> & { readonly sealed: Buffer | undefined };

/**
 * Returns the columns of a row as one `bytea`, for `string_agg`. The driver converts each column of each row by itself, which takes
 * longer than to read these bytes. `sealed` is an expression for the encrypted text, or NULL.
 */
export const packedSql = (sealed: string): string =>
  `int8send(number) || int8send(created_at) || int8send(updated_at) || int8send(expires_at)
     || int4send(octet_length(category)) || int4send(octet_length(key_hash)) || int4send(coalesce(octet_length(${sealed}), ${NOT_READ}))
     || convert_to(category, 'UTF8') || key_hash || coalesce(${sealed}, '')`;

/** Returns the rows in the order in which the server packed them. The buffers of all rows share memory. */
export function unpackRows(bytes: Buffer | null): PackedRow[] {
  const rows: PackedRow[] = [];
  if (bytes === null) return rows;
  for (let at = 0; at < bytes.length;) {
    const hashAt = at + HEADER_BYTES + bytes.readUInt32BE(at + 32);
    const sealedAt = hashAt + bytes.readUInt32BE(at + 36);
    const sealedBytes = bytes.readInt32BE(at + 40);
    const end = sealedAt + Math.max(0, sealedBytes);
    rows.push({
      row: readInt8(bytes, at),
      created_at: readInt8(bytes, at + 8),
      updated_at: readInt8(bytes, at + 16),
      expires_at: readInt8(bytes, at + 24),
      category: bytes.toString('utf8', at + HEADER_BYTES, hashAt),
      key_hash: bytes.subarray(hashAt, sealedAt),
      sealed: sealedBytes === NOT_READ ? undefined : bytes.subarray(sealedAt, end),
    });
    at = end;
  }
  return rows;
}

const readInt8 = (bytes: Buffer, at: number): number => bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
