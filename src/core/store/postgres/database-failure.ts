import pg from 'pg';
import { Failure } from '../../../contract/failure.ts';

/**
 * Classes of SQLSTATE codes, and codes, that mean that the connection or the server is gone. The server also closes a connection whose
 * transaction was idle for too long.
 */
const LOST = /^(08|57P0[1235]|25P0[34])/;
/** Errors of Node's sockets and of its TLS. */
const NETWORK = /^(E(?!RR_)|ERR_(SSL|TLS|STREAM|SOCKET)_)/;
/** Errors of Node when it verifies the certificate of a server. */
const CERTIFICATE = /CERT|ALTNAME|UNABLE_TO_|SIGNATURE/;
/** Errors of the local disk and of SQLite. A backup and a move write to both, the database and a file. */
const LOCAL = /^(SQLITE_|E(NOSPC|DQUOT|IO|ROFS)$)/;
/** Messages of the driver, which gives these errors no code. */
const DRIVER = /^(Connection terminated|timeout expired|Client (has encountered|was closed)|Query read timeout)/;
/** The severity of an error that ends only its transaction. A server that speaks another language uses another word. */
const ERROR = 'ERROR';

/** The address of the database leads to a read-only standby. */
export class StandbyError extends Error {}

const STANDBY = 'This database server is a read-only standby. Use the address of the primary.';

const codeOf = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : '';
};

/** Whether the database cannot be reached at the moment, so that another attempt can succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  if (error instanceof StandbyError) return true;
  if (error instanceof pg.DatabaseError) return code === '' || LOST.test(code);
  if (code !== '') return NETWORK.test(code) && !CERTIFICATE.test(code) && !isLocal(error);
  return error instanceof Error && DRIVER.test(error.message);
}

/**
 * Whether the server itself refused a statement, so that its transaction is undone. After any other error, such as a broken TLS
 * record, a transaction whose COMMIT was sent may be committed.
 */
export const isRefused = (error: unknown): boolean =>
  error instanceof pg.DatabaseError &&
  /^[0-9A-Z]{5}$/.test(codeOf(error)) &&
  error.severity === ERROR &&
  !isConnectionLost(error);

/** Whether the values of one write caused the error, so that other writes of its batch can succeed. */
export const isAboutValues = (error: unknown): boolean => error instanceof pg.DatabaseError && /^2[23]/.test(codeOf(error));

/** Whether the server undid a transaction because of another one. It can be run again. */
export const isConflict = (error: unknown): boolean => /^40(001|P01)$/.test(codeOf(error));

/** The driver's message if the server refuses TLS. */
const WITHOUT_TLS = 'The server does not support SSL connections';

/** Whether an error is a bug or a failure of this program or of this machine's disk, and not of the database. */
const isOwn = (error: unknown): boolean => isLocal(error) || (codeOf(error) === '' && !isConnectionLost(error));

/** Whether an error concerns a file. The errors of sockets have no path. */
const isLocal = (error: unknown): boolean => LOCAL.test(codeOf(error)) || (error instanceof Error && 'path' in error);

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^28/, 'The database refused the user or the password. Check HELMDECK_DATABASE_URL.'],
  [/^3D000/, 'The database does not exist. Create it, or check HELMDECK_DATABASE_URL.'],
  [/^42501/, 'The database role lacks a right. Grant the rights that docs/server.md lists.'],
  [/^25006/, STANDBY],
  [/^22012/, 'Rows of this memory were changed outside Helmdeck Memory during the write. Nothing was changed. Write again.'],
  [
    /^55P03/,
    'Another program holds a lock on the tables of this memory, so nothing was changed. Wait until its restore or move has finished, or end its transaction.',
  ],
  [/^53200/, 'The database server has no free memory, so nothing was changed. Free memory on the server, and try again.'],
  [/^53300/, 'The database server has no free connection. Raise max_connections, or stop other clients.'],
];

/**
 * Converts an error of the database to the failure for callers. The text of the error is not shown, because it can contain values
 * of rows.
 */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof Error && error.message === WITHOUT_TLS) {
    const message = 'The database server does not offer TLS. Turn TLS on at the server.';
    return new Failure('store_unavailable', message, { cause: error });
  }
  if (error instanceof StandbyError) return new Failure('store_unavailable', STANDBY, { cause: error });
  if (error instanceof Failure || isOwn(error)) return error;
  const code = codeOf(error);
  if (code === '53100') {
    return new Failure('disk_full', 'The disk of the database server is full. Nothing was changed. Free space on the server.', {
      cause: error,
    });
  }
  const remedy = REMEDIES.find(([pattern]) => pattern.test(code))?.[1];
  if (remedy !== undefined) return new Failure('store_unavailable', remedy, { cause: error });
  if (CERTIFICATE.test(code)) {
    const message = `The certificate of the database server cannot be verified (${code}). Correct it, or name its issuer with sslrootcert.`;
    return new Failure('store_unavailable', message, { cause: error });
  }
  if (isConnectionLost(error)) {
    return new Failure('store_unavailable', 'The database cannot be reached. Start it, or check HELMDECK_DATABASE_URL.', {
      cause: error,
    });
  }
  return new Failure('store_unavailable', `The database reported error ${code}. See the log of the database server.`, {
    cause: error,
  });
}
