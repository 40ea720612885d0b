import type { Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, BlockList, Socket } from 'node:net';
import { asFailure, Failure } from '../../contract/failure.ts';
import { type Caller, hasScope } from '../../core/access/caller.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import { errorCodeOf } from '../../core/file/files.ts';
import type { Clock } from '../../core/time/clock.ts';
import { formatListenAddress, type ListenAddress } from '../address.ts';
import { createGuardFor } from '../guard.ts';
import { HttpConnections } from '../http-connections.ts';
import { badRequest, closeServer, prepareServer, SERVER_OPTIONS, serveConnections } from '../http-server.ts';
import { CONNECTION_LIMITS } from '../limits.ts';
import { listenOn } from '../port.ts';
import { RequestPipeline } from '../request-pipeline.ts';
import type { LogEvent, Route } from '../route.ts';
import { type CertificateFiles, ServerCertificate } from './certificate.ts';
import { PendingConnections } from './pending-connections.ts';
import { createProxyList } from './proxy-list.ts';

/** How other machines connect: with TLS of this server, through a trusted proxy, or both. */
export interface TeamSettings {
  readonly address: ListenAddress;
  /** Host headers of this server. If empty, the names in the certificate. */
  readonly hosts: readonly string[];
  /** Addresses and networks of the proxy. If empty, every address can connect. */
  readonly proxies: readonly string[];
  readonly certificate: CertificateFiles | undefined;
}

interface Deps {
  /** The routes for agents. They must not contain a route that only the owner may use. */
  readonly routes: readonly Route[];
  readonly tokens: Pick<TokenRegistry, 'verify'>;
  readonly folder: string;
  readonly log: (event: LogEvent) => void;
  /** Reports a problem that the owner should solve while the server keeps running. */
  readonly warn: (problem: string) => void;
}

interface TeamListener {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Shortest time between two looks at the files of the certificate, in milliseconds. */
const RELOAD_MS = 1000;

/**
 * Checks the certificate, and returns a function that starts the server for other machines. Requests to this server cannot reach
 * the window, create a link to it, or use a token with the scope `admin`. The socket decides this, and no header can change it
 * (R-TEAM-03).
 */
export function prepareTeamListener(settings: TeamSettings, clock: Clock): (deps: Deps) => Promise<TeamListener> {
  const { address, hosts, certificate: files } = settings;
  const certificate = files && new ServerCertificate(files, clock.now());
  const proxies = settings.proxies.length === 0 ? undefined : createProxyList(settings.proxies);
  return async ({ routes, tokens, folder, log, warn }) => {
    const pipeline = new RequestPipeline({
      guard: createGuardFor({
        isOwnHost: (host) =>
          hosts.length > 0
            ? [host, hostNameOf(host)].some((name) => hosts.includes(name.toLowerCase()))
            : certificate?.isFor(hostNameOf(host)) === true,
        schemes: ['https'],
        hint: 'use a name in its certificate or in HELMDECK_SERVER_HOSTS',
      }),
      routes,
      tokens: { verify: async (...request) => refuseAdmin(await tokens.verify(...request)) },
      clock,
      log,
    });
    const perAddress = proxies ? Infinity : CONNECTION_LIMITS.anonymousPerAddress;
    const connections = new HttpConnections(clock, pipeline, perAddress);
    const server = prepareServer(certificate ? createTlsServer(certificate) : createHttpServer());
    const pending = certificate && new PendingConnections(perAddress);
    if (proxies) server.prependListener('connection', (socket: Socket) => refuseStranger(socket, proxies));
    if (certificate && pending) {
      followRenewals({ server, certificate, clock, warn });
      limitHandshakes(server, pending);
    }
    serveConnections(server, connections, certificate ? 'secureConnection' : 'connection');
    await listenOn(server, address, folder, 'HELMDECK_SERVER_ADDR');
    const { port } = server.address() as AddressInfo;
    return {
      url: `https://${hosts[0] ?? publicAddress({ ...address, port }, certificate?.firstName)}`,
      port,
      async close() {
        pending?.destroyAll();
        await closeServer(server, connections);
      },
    };
  };
}

/** Loaded without `import` (see listener.ts), and only if the server needs them. */
const createHttpServer = (): Server => process.getBuiltinModule('node:http').createServer(SERVER_OPTIONS);

const createTlsServer = ({ material }: ServerCertificate): Server =>
  process.getBuiltinModule('node:https').createServer({
    ...SERVER_OPTIONS,
    ...material,
    minVersion: 'TLSv1.2',
    handshakeTimeout: CONNECTION_LIMITS.headersMs,
  });

/** Closes a connection that does not come from the proxy. Nothing was read from it. */
function refuseStranger(socket: Socket, proxies: BlockList): void {
  const { remoteAddress = '', remoteFamily } = socket;
  if (!proxies.check(remoteAddress, remoteFamily === 'IPv6' ? 'ipv6' : 'ipv4')) socket.destroy();
}

interface Renewals extends Pick<Deps, 'warn'> {
  readonly server: Server;
  readonly certificate: ServerCertificate;
  readonly clock: Clock;
}

/**
 * Uses a renewed certificate from the next connection on. Open connections keep the certificate with which they began. The files
 * are checked when a client connects, so that no timer is needed.
 */
function followRenewals({ server, certificate, clock, warn }: Renewals): void {
  let checked = -Infinity;
  // Run before Node creates the TLS connection.
  server.prependListener('connection', () => {
    const now = performance.now();
    if (now - checked < RELOAD_MS) return;
    checked = now;
    try {
      if (certificate.reload(clock.now())) (server as HttpsServer).setSecureContext(certificate.material);
    } catch (error) {
      warn(`The renewed certificate was not loaded, so the earlier one stays in use. ${asFailure(error).message}`);
    }
  });
}

const PLAIN_HTTP = 'This server accepts only HTTPS; send the request to the same address with https://.';

/** Limits the connections that have not finished their TLS handshake, and answers clients that send HTTP without TLS. */
function limitHandshakes(server: Server, pending: PendingConnections): void {
  server.prependListener('connection', (socket: Socket) => {
    if (!socket.destroyed) pending.add(socket);
  });
  server.prependListener('secureConnection', (socket: Socket) => void pending.take(socket));
  server.prependListener('clientError', (error: Error, socket: Socket) => {
    const plain = pending.take(socket);
    if (plain && errorCodeOf(error) === 'ERR_SSL_HTTP_REQUEST') plain.end(badRequest(PLAIN_HTTP));
  });
}

function refuseAdmin(caller: Caller): Caller {
  if (!hasScope(caller, 'admin') && caller.owner !== true) return caller;
  throw new Failure(
    'insufficient_scope',
    'A token with the scope `admin` works only on the machine of the server; use a token without this scope.',
  );
}

/** Returns the name in a Host header, without port and brackets. */
const hostNameOf = (host: string): string => host.replace(/:\d{1,5}$/, '').replace(/^\[(.*)\]$/, '$1');

/** Returns the address to show to the owner. 0.0.0.0 is no address to connect to, so the name in the certificate is preferred. */
const publicAddress = (address: ListenAddress, name: string | undefined): string =>
  name === undefined ? formatListenAddress(address) : formatListenAddress({ host: name, port: address.port });
