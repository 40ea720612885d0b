import { clientId } from '../store/entry.ts';
import type { Author } from '../store/store.ts';
import { type Caller, hasScope } from './caller.ts';

type Client = Pick<Author, 'client' | 'token'>;

export const isSameClient = (one: Client, other: Client): boolean => clientId(one) === clientId(other);

/** Whether the caller is allowed to end a run or session: only the owner and the client that started it are. */
export const mayEnd = (caller: Caller, starter: Client): boolean => hasScope(caller, 'admin') || isSameClient(caller, starter);

/**
 * Whether the caller is allowed to use another of the `most` places that the clients of a subject share. A client must use fewer
 * places than are free, so that some places are always left for other clients. The owner can use every free place.
 */
export function mayTakePlace(caller: Caller, holders: readonly Client[], most: number): boolean {
  const free = most - holders.length;
  if (hasScope(caller, 'admin')) return free > 0;
  return holders.filter((holder) => isSameClient(holder, caller)).length < free;
}
