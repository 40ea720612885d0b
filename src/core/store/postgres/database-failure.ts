import { Failure } from '../../../contract/failure.ts';

/** Classes of SQLSTATE codes, and codes, that mean that the connection or the server is gone. */
const LOST = /^(08|57P0[123])/;
/** Errors of Node's sockets. */
const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);
/** Messages of the driver, which gives these errors no code. */
const DRIVER = /^(Connection terminated|timeout expired|Client (has encountered|was closed)|Query read timeout)/;

const codeOf = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : '';
};

/** Whether the database cannot be reached at the moment, so that another attempt can succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== '') return LOST.test(code) || NETWORK.has(code);
  return error instanceof Error && DRIVER.test(error.message);
}

/** Whether the server undid a transaction because of another one. It can be run again. */
export const isConflict = (error: unknown): boolean => /^40(001|P01)$/.test(codeOf(error));

/** Errors of Node when it verifies the certificate of a server. */
const CERTIFICATE = /CERT|ALTNAME|UNABLE_TO_|SIGNATURE/;
/** The driver's message if the server refuses TLS. */
const WITHOUT_TLS = 'The server does not support SSL connections';

/** Whether an error is a bug or a failure of this program, and not of the database. */
const isOwn = (error: unknown): boolean => codeOf(error) === '' && !isConnectionLost(error);

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^28/, 'The database refused the user or the password. Check HELMDECK_DATABASE_URL.'],
  [/^3D000/, 'The database does not exist. Create it, or check HELMDECK_DATABASE_URL.'],
  [/^42501/, 'The database role lacks a right. Grant the rights that docs/server.md lists.'],
  [/^25006/, 'This database server is a read-only standby. Use the address of the primary.'],
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
  if (error instanceof Failure || isOwn(error)) return error;
  const code = codeOf(error);
  if (/^53100|^53200/.test(code)) {
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
