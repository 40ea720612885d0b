import { request } from 'node:https';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { TeamSettings } from '../../src/listeners/team/team-listener.ts';
import { createAuthority, type CertificateAuthority, type IssuedCertificate } from './certificates.ts';
import type { HttpRequest, HttpResponse, ServeOptions, ServedMemory } from './listener.ts';
import { parsed, serve } from './listener.ts';

/** The name in the certificates of the test servers. */
export const TEAM_NAME = 'memory.test';

/** An IPv4 address of this machine that is not a loopback address, if it has one. */
export const ownAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

export interface ServedTeam extends ServedMemory {
  readonly authority: CertificateAuthority;
  readonly files: IssuedCertificate;
  /** The address and port of the server for other machines. */
  readonly host: string;
  readonly teamPort: number;
  /** Sends a request to the server for other machines, with TLS unless the server has no certificate. */
  readonly send: (path: string, request?: TeamRequest) => Promise<HttpResponse>;
}

/** Options of a TLS connection. Node's types leave out the local address. */
export type TlsOptions = ConnectionOptions & { readonly localAddress?: string };

export interface TeamRequest extends HttpRequest {
  readonly tls?: TlsOptions;
}

interface ServeTeamOptions extends Omit<ServeOptions, 'team'> {
  readonly host?: string;
  readonly authority?: CertificateAuthority;
  readonly names?: readonly string[];
  readonly team?: Partial<TeamSettings>;
}

/** Serves a memory to other machines with TLS, until the test ends. */
export async function serveTeam({
  host = '127.0.0.2',
  authority = createAuthority(),
  names = [`DNS:${TEAM_NAME}`, `IP:${host}`],
  team = {},
  ...options
}: ServeTeamOptions = {}): Promise<ServedTeam> {
  const files = authority.issue(names);
  const settings: TeamSettings = { address: { host, port: 0 }, hosts: [], proxies: [], certificate: files, ...team };
  const served = await serve({ ...options, team: settings });
  const teamPort = served.listener.serverPort ?? 0;
  const send = (path: string, sent: TeamRequest = {}): Promise<HttpResponse> =>
    sendTls(host, teamPort, path, { ...sent, tls: { ca: authority.ca, ...sent.tls } });
  return { ...served, authority, files, host, teamPort, send };
}

/** Sends one HTTPS request on a new connection. */
export function sendTls(host: string, port: number, path: string, sent: TeamRequest): Promise<HttpResponse> {
  const { method, token, headers = [], body, tls = {} } = sent;
  const text = body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const has = (wanted: string): boolean => headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === wanted);
  const all = [
    ...(has('host') ? [] : ['Host', `${TEAM_NAME}:${port}`]),
    ...(token === undefined ? [] : ['Authorization', `Bearer ${token}`]),
    ...(text === undefined || has('content-type') ? [] : ['Content-Type', 'application/json']),
    ...(text === undefined ? [] : ['Content-Length', `${Buffer.byteLength(text)}`]),
    ...headers,
  ];
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const options = { host, port, path, servername: TEAM_NAME, agent: false, setHost: false, ...tls } as const;
  const sending = request({ ...options, method: method ?? (text === undefined ? 'GET' : 'POST'), headers: all }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
    response.on('end', () => {
      const received = Buffer.concat(chunks).toString();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received, json: parsed(received) });
    });
  });
  sending.on('error', reject).end(text);
  return promise;
}

/** Opens a TLS connection, which can send anything. */
export async function openTls(port: number, options: TlsOptions): Promise<TLSSocket> {
  const socket = connect({ port, servername: TEAM_NAME, ...options });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return socket;
}

/** Returns everything that the socket receives until the other side closes it. */
export async function readToEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await new Promise<void>((resolve) => socket.once('close', resolve).once('error', () => resolve()));
  return text;
}
