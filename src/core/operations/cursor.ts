import { Failure } from '../../contract/failure.ts';
import type { EntryCursor, PageQuery } from '../store/store.ts';

type Sort = PageQuery['sort'];

/**
 * Encodes a position in a list: two numbers and the sort order. The cursor reveals nothing that the previous page did not show.
 */
export const encodeCursor = ({ at, row }: EntryCursor, sort: Sort): string =>
  Buffer.from(JSON.stringify([sort, at, row])).toString('base64url');

export function decodeCursor(text: string, sort: Sort): EntryCursor {
  try {
    const [order, at, row, ...rest] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (order === sort && isInteger(at) && isInteger(row) && rest.length === 0) return { at, row };
  } catch {
    // An unreadable cursor is reported below, like any other invalid cursor.
  }
  throw new Failure(
    'invalid_input',
    'cursor does not belong to this list; send the `next_cursor` of the previous page unchanged, with the same `sort`.',
  );
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
