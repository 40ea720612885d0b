import { readFileSync } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';
import type { DatabaseOptions } from './database.ts';

const DEFAULT_SCHEMA = 'helmdeck_memory';
/** A schema name that needs no quotes, so that an administrator can type it. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,40}$/;
const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]', '']);
const PARAMETERS = new Set(['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'host', 'schema']);
/** An address with several hosts. An `@` after them is a part of a password that contains an unescaped character. */
const SEVERAL_HOSTS = /^postgres(ql)?:\/\/([^/?#]*@)?[^/?#@]*,[^@]*$/;
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof SSL_MODES)[number];

/**
 * Parses the address of a database. TLS is required and verified, unless the server is on this machine or `sslmode` says otherwise.
 * No message contains the address, because it can contain a password.
 */
export function parseDatabaseUrl(text: string): DatabaseOptions {
  if (SEVERAL_HOSTS.test(text)) {
    // Two processes could take different servers for the primary.
    throw invalid(
      'it names several servers; use one address that always leads to the primary, such as a virtual IP or a TCP proxy',
    );
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'postgres:' && url?.protocol !== 'postgresql:') {
    throw invalid('it is not an address like postgres://user:password@host/database; write special characters as percent codes');
  }
  if (url.hash !== '') throw invalid('it contains #; write # in a password as %23');
  const parameters = url.searchParams;
  if (parameters.has('target_session_attrs'))
    throw invalid('target_session_attrs has no effect, because a standby is always refused; remove it');
  for (const name of parameters.keys()) {
    // An unescaped `?` in a password makes the rest of the password a parameter, so unknown names are not shown.
    if (!PARAMETERS.has(name)) {
      throw invalid(`it has an unknown parameter; use ${[...PARAMETERS].join(', ')}, and write ? in a password as %3F`);
    }
    if (parameters.getAll(name).length > 1) throw invalid(`the parameter ${name} appears twice`);
  }
  const folder = parameters.get('host') ?? '';
  if (folder !== '' && !folder.startsWith('/'))
    throw invalid('the parameter host must be the folder of a socket; put the host before the path');
  const database = decode(url.pathname.slice(1));
  if (database === '') throw invalid('it names no database');
  const schema = parameters.get('schema') ?? DEFAULT_SCHEMA;
  if (!SCHEMA.test(schema)) throw invalid('the schema must have at most 41 lowercase letters, digits and underscores');
  const isLocal = folder !== '' || LOCAL.has(url.hostname);
  const ssl = tlsOf(parameters, isLocal);
  const [user, password] = [decode(url.username), decode(url.password)];
  return {
    schema,
    connection: {
      host: folder === '' ? url.hostname.replace(/^\[|\]$/g, '') || 'localhost' : folder,
      port: url.port === '' ? 5432 : Number(url.port),
      database,
      ssl,
      ...(user !== '' && { user }),
      ...(password !== '' && { password }),
    },
  };
}

function tlsOf(parameters: URLSearchParams, isLocal: boolean): DatabaseOptions['connection']['ssl'] {
  const mode = parameters.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full');
  if (!isSslMode(mode)) {
    // `allow` and `prefer` would silently use an unencrypted connection if an attacker asks for it.
    throw invalid(`sslmode must be one of ${SSL_MODES.join(', ')}`);
  }
  if (mode === 'disable') return false;
  const file = (name: string): string | undefined => {
    const path = parameters.get(name);
    return path === null ? undefined : readFile(name, path);
  };
  const [ca, cert, key] = [file('sslrootcert'), file('sslcert'), file('sslkey')];
  // Any name under a public authority would be accepted, and everyone can get a certificate there.
  if (mode === 'verify-ca' && ca === undefined) {
    throw invalid('verify-ca needs sslrootcert with the certificate of your own authority; otherwise use verify-full');
  }
  return {
    // As with libpq, `require` verifies the authority too if one is given.
    rejectUnauthorized: mode !== 'require' || ca !== undefined,
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
}

const isSslMode = (mode: string): mode is SslMode => (SSL_MODES as readonly string[]).includes(mode);

function readFile(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw invalid(`the file of ${name} cannot be read`, cause);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw invalid('it contains an incomplete percent code', cause);
  }
}

const invalid = (why: string, cause?: unknown): Failure =>
  new Failure('invalid_config', `HELMDECK_DATABASE_URL cannot be used: ${why}.`, { cause });
