import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { Failure, type FailureCode } from '../../contract/failure.ts';
import { oneLine } from '../../contract/schema.ts';
import { VERSION } from '../../contract/updates.ts';
import { isNewer } from '../../core/operations/versions.ts';

/** A server on another machine, as it is stored for the bridge in `clients/<client>.server.json`. */
export interface TeamServer {
  /** Scheme, name and port, such as `https://memory.example:7443`. */
  readonly url: string;
  /** Certificates of further authorities to trust, in PEM. */
  readonly ca?: string;
}

/** A token that an admin of the server gave to the user, with the claims that are shown and stored. */
export interface TeamToken {
  readonly token: string;
  readonly id: string;
  readonly subject: string;
  /** The client that the token names as the author of all writes. */
  readonly client: string;
  /** When the token expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** Oldest version of Helmdeck Memory that can serve other machines. */
const MIN_VERSION = '0.1.0';
const TIMEOUT_MS = 10_000;
const MAX_RESPONSE = 64 * 1024;

/** Parses the address of a server. Throws unless it is `https` with a name and an optional port. */
export function parseServerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' && url.href === `${url.origin}/`) return url.origin;
  throw invalid(
    'The address of the server must start with https:// and end after the port, such as https://memory.example:7443.',
  );
}

/** Checks a file with certificates of authorities. Returns its text. */
export function parseAuthorities(text: string): string {
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    if (certificates.length > 0 && certificates.every((one) => isTrustAnchor(new X509Certificate(one))))
      return certificates.join('\n');
  } catch {
    // A damaged certificate is reported like a missing one.
  }
  throw invalid(
    'The file of --ca must contain certificates of authorities, or a self-signed certificate, in PEM. Ask the admin of the server for the right file.',
  );
}

/** Whether a certificate can be trusted on its own: that of an authority, or one that a server signed for itself. */
const isTrustAnchor = (certificate: X509Certificate): boolean => certificate.ca || certificate.checkIssued(certificate);

/** Parses a token. Throws unless it looks like a token of Helmdeck Memory; only the server can verify it. */
export function parseToken(text: string): TeamToken {
  const token = text.trim();
  const claims = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token)?.[1] ?? '';
  try {
    const { sub, client, exp, jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
    if (typeof sub === 'string' && typeof exp === 'number' && Math.abs(exp) < MAX_SECONDS) {
      return {
        token,
        id: typeof jti === 'string' ? jti : '',
        subject: sub,
        client: typeof client === 'string' ? client : 'unknown',
        expires: exp * 1000,
      };
    }
  } catch {
    // Text that is not JSON is no token either.
  }
  throw invalid('This is not a token of Helmdeck Memory. Copy the whole token that the admin of the server gave you.');
}

const MAX_SECONDS = 8_640_000_000_000;

/**
 * Sends one request with the token to the server, to check that both work. Throws one sentence for the user if the server cannot
 * be reached or trusted, refuses the token, is another program, or is too old.
 */
export async function probeServer({ url, ca }: TeamServer, token: string): Promise<void> {
  const { connectVerified, serverEndpoint } = await import('../../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs');
  const endpoint = serverEndpoint(url, ca);
  const socket = await new Promise<TLSSocket>((resolve, reject) => {
    connectVerified(endpoint, (error, connected) => {
      if (connected) resolve(connected);
      else
        reject(
          new Failure(error?.code === 'untrusted' ? 'handler_failed' : 'unavailable', error?.message ?? '', { cause: error }),
        );
    });
  });
  try {
    requireSuitable(endpoint.authority, await sendProbe(socket, endpoint.authority, token));
  } finally {
    socket.destroy();
  }
}

interface ProbeResponse {
  readonly status: number;
  readonly body: { readonly version?: unknown; readonly error?: unknown; readonly message?: unknown };
}

async function sendProbe(socket: TLSSocket, authority: string, token: string): Promise<ProbeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = { Host: authority, Authorization: `Bearer ${token}`, Accept: 'application/json' };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  process
    .getBuiltinModule('node:http')
    .request({ path: '/api/v1/version', headers, signal, createConnection: () => socket }, resolve)
    .once('error', reject)
    .end();
  try {
    const response = await promise;
    let text = '';
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > MAX_RESPONSE) break;
    }
    return { status: response.statusCode ?? 0, body: bodyOf(text) };
  } catch (cause) {
    throw new Failure('unavailable', `The server at ${authority} did not answer. Try again, or ask its admin.`, { cause });
  }
}

function bodyOf(text: string): ProbeResponse['body'] {
  try {
    return Object(JSON.parse(text)) as ProbeResponse['body'];
  } catch {
    return {};
  }
}

function requireSuitable(authority: string, { status, body: { version, error, message } }: ProbeResponse): void {
  if (status === 200 && typeof version === 'string' && VERSION.test(version)) {
    if (!isNewer(MIN_VERSION, version)) return;
    throw new Failure(
      'handler_failed',
      `The server at ${authority} runs Helmdeck Memory ${oneLine(version, 40)}, which is too old. Ask its admin to update it to ${MIN_VERSION} or newer.`,
    );
  }
  if (typeof error !== 'string' || typeof message !== 'string') {
    throw new Failure('handler_failed', `The server at ${authority} is not Helmdeck Memory. Check the address.`);
  }
  const code = REFUSALS[error] ?? (status >= 500 ? 'unavailable' : 'handler_failed');
  throw new Failure(code, `The server at ${authority} refused the request: ${oneLine(message, 300)}`);
}

/** The server's codes that are also the codes of this command. All others mean that the server is unusable. */
const REFUSALS: Readonly<Record<string, FailureCode>> = {
  invalid_token: 'invalid_token',
  missing_bearer: 'invalid_token',
  insufficient_scope: 'insufficient_scope',
};

const invalid = (message: string): Failure => new Failure('invalid_input', message);
