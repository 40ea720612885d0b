import type { Author } from './store.ts';

/** The client name of a token that names none. */
const NAMELESS = 'unknown';

/** Tells clients apart: by name, or where a client has no name by its token. No client name contains a colon. */
export const clientId = ({ client, token }: Pick<Author, 'client' | 'token'>): string =>
  client === NAMELESS ? `${NAMELESS}:${token}` : client;

/**
 * Tells writers apart wherever one must not destroy what another wrote. A client that runs another client's definition is not
 * the same writer as that client on its own: the words are the definer's, and would otherwise count as the runner's own.
 */
export const writerOf = ({ client, token, definedBy }: Author): string =>
  definedBy === undefined ? clientId({ client, token }) : `${clientId({ client, token })}:via:${definedBy}`;

export const isSameWriter = (one: Author, other: Author): boolean => writerOf(one) === writerOf(other);
