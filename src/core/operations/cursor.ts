import { Failure } from '../../contract/failure.ts';
import type { EntryCursor, PageQuery } from '../store/store.ts';

type Sort = PageQuery['sort'];

/** Two numbers and the order they belong to; it says nothing that the page before did not show. */
export const encodeCursor = ({ at, row }: EntryCursor, sort: Sort): string =>
  Buffer.from(JSON.stringify([sort, at, row])).toString('base64url');

export function decodeCursor(text: string, sort: Sort): EntryCursor {
  try {
    const [order, at, row, ...rest] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (order === sort && isPlace(at) && isPlace(row) && rest.length === 0) return { at, row };
  } catch {
    // Told below, like every other text that is not ours.
  }
  throw new Failure('invalid_input', 'cursor is not one of this list; send next_cursor as you got it, with the same sort.');
}

const isPlace = (value: unknown): value is number => Number.isSafeInteger(value);
