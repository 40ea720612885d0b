import { clientId } from '../store/entry.ts';
import type { Author } from '../store/store.ts';
import { type Caller, hasScope } from './caller.ts';

type Client = Pick<Author, 'client' | 'token'>;

export const isSameClient = (one: Client, other: Client): boolean => clientId(one) === clientId(other);

/** Whether the caller may end something that a client started: only that client and the owner may. */
export const mayEnd = (caller: Caller, starter: Client): boolean => hasScope(caller, 'admin') || isSameClient(caller, starter);

/**
 * Whether the caller may take one more of `most` places that the clients of a subject share. A client may as long as it holds
 * fewer places than are free, so that some are always left for other clients. The owner may take every free place.
 */
export function mayTakePlace(caller: Caller, holders: readonly Client[], most: number): boolean {
  const free = most - holders.length;
  if (hasScope(caller, 'admin')) return free > 0;
  return holders.filter((holder) => isSameClient(holder, caller)).length < free;
}
