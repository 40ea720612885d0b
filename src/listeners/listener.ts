import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/names.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import { diskFailureOf } from '../core/file/disk-failure.ts';
import type { WindowSessionPort } from '../core/operations/memory.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { Catalogue } from '../core/packs/catalogue.ts';
import type { MemoryStore } from '../core/store/store.ts';
import type { Clock } from '../core/time/clock.ts';
import { formatListenAddress, parseListenAddress } from './address.ts';
import { ChangeEvents } from './change-events.ts';
import { publishEndpoint, type PublishedEndpoint } from './endpoint.ts';
import { exportRoute } from './export-route.ts';
import { createGuard } from './guard.ts';
import { HttpConnections } from './http-connections.ts';
import { closeServer, prepareServer, SERVER_OPTIONS, serveConnections } from './http-server.ts';
import { importRoute } from './import-route.ts';
import { infoRoutes } from './info-routes.ts';
import { createMcpServers } from './mcp/mcp-servers.ts';
import { listenOn } from './port.ts';
import { BodyReader } from './request-body.ts';
import { RequestPipeline } from './request-pipeline.ts';
import { embeddingsRoute, ownerRoute, restRoutes } from './rest-routes.ts';
import type { LogEvent } from './route.ts';
import { StreamRegistry } from './stream-registry.ts';
import { type TeamSettings, prepareTeamListener } from './team/team-listener.ts';
import { windowLinkRoute, WindowServer } from './window/window-server.ts';

export interface ListenerDeps {
  readonly perform: Perform;
  readonly catalogue?: Pick<Catalogue, 'all'> | undefined;
  readonly tokens: TokenRegistry;
  readonly onChange: MemoryStore['onChange'];
  /**
   * Returns whether the memory can be read, as far as its last access showed. If absent, each request of the search server runs
   * the operation `status`.
   */
  readonly isReadable?: (() => boolean) | undefined;
  /** Adds a listener that is called when the master key becomes available or unavailable. */
  readonly onKeyChange?: ((listener: () => void) => Disposable) | undefined;
  /** The data folder, to which `endpoint.json` and `owner-token` are written. */
  readonly folder: string;
  /** The value of HELMDECK_ADDR. */
  readonly address?: string | undefined;
  /** Further accepted Host headers, for a tunnel to this machine. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** How other machines connect. If undefined, only this machine can connect. */
  readonly team?: TeamSettings | undefined;
  /** The folder that contains the built files of the window. If undefined, the window cannot be opened in a browser. */
  readonly windowFolder?: string | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log?: ((event: LogEvent) => void) | undefined;
  /** Reports a problem that the owner should solve while the server keeps running. */
  readonly warn?: ((problem: string) => void) | undefined;
}

export interface Listener extends AsyncDisposable {
  readonly url: string;
  /** The URL at which other machines connect. Undefined if they cannot connect. */
  readonly serverUrl: string | undefined;
  /** The port of that URL on this machine, which a proxy or container can map to another port. */
  readonly serverPort: number | undefined;
  /**
   * Creates a single-use link that opens the window in a browser. Returns undefined if the window's files have not been built.
   */
  windowLink(): string | undefined;
  /** The window's browser sessions. Undefined if the window's files have not been built. */
  readonly windowSessions: WindowSessionPort | undefined;
  /** Deletes `endpoint.json`, ends streams, and waits briefly for pending requests. */
  close(): Promise<void>;
}

/**
 * `node:http` is loaded without `import`, because an import would make Node load its HTTP client too. That would add 14 ms to
 * each startup, and use more RAM.
 */
const { createServer } = process.getBuiltinModule('node:http');

/**
 * Starts the HTTP server, which listens only on a loopback address (R-HTTP-01). Starts a second server if other machines can
 * connect.
 */
export async function startListener(deps: ListenerDeps): Promise<Listener> {
  const { perform, catalogue, tokens, onChange, onKeyChange, isReadable, folder, allowedHosts, windowFolder, version, clock } =
    deps;
  const { log = () => undefined, warn = () => undefined } = deps;
  const address = parseListenAddress(deps.address ?? DEFAULT_ADDRESS);
  // Check the certificate before any port is opened.
  const startTeamListener = deps.team && prepareTeamListener(deps.team, clock);
  const server = prepareServer(createServer(SERVER_OPTIONS));
  await listenOn(server, address, folder);
  const { port } = server.address() as AddressInfo;
  const url = `http://${formatListenAddress({ ...address, port })}`;
  const published = publishOrClose(server, folder, { url, token: tokens.ownerToken(), now: clock.now() });
  const bodies = new BodyReader(clock);
  const streams = new StreamRegistry(clock, tokens);
  const events = new ChangeEvents(streams, onChange);
  const mcp = createMcpServers({ perform, catalogue, isReadable, tokens, onChange, bodies, streams, clock, version, log });
  const window =
    windowFolder === undefined
      ? undefined
      : new WindowServer({ perform, bodies, clock, onChange, onKeyChange, folder: windowFolder, log });
  const windowLink = (): string | undefined => window?.createLink(url);
  const routes = [
    ...restRoutes({ perform, bodies }),
    exportRoute({ perform, clock, streams }),
    importRoute({ perform, clock, streams }),
    embeddingsRoute({ perform, bodies }),
    events.route,
    ...mcp.routes,
    ...infoRoutes(version),
  ];
  const pipeline = new RequestPipeline({
    window,
    guard: createGuard(port, allowedHosts),
    routes: [ownerRoute({ perform, bodies }), ...routes, windowLinkRoute(windowLink, bodies)],
    tokens,
    prove: published.prove,
    clock,
    log,
  });
  const connections = new HttpConnections(clock, pipeline);
  serveConnections(server, connections);

  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= closeAll());
  const team = await startTeamListener?.({ routes, tokens, folder, log, warn }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const more = { serverUrl: team?.url, serverPort: team?.port, windowSessions: window?.sessions };
  return { url, ...more, windowLink, close, [Symbol.asyncDispose]: close };

  async function closeAll(): Promise<void> {
    // Delete `endpoint.json` first, so that no other program connects while the server closes.
    published[Symbol.dispose]();
    events[Symbol.dispose]();
    window?.[Symbol.dispose]();
    mcp[Symbol.dispose]();
    streams[Symbol.dispose]();
    await Promise.all([closeServer(server, connections), team?.close()]);
  }
}

function publishOrClose(server: Server, folder: string, endpoint: Parameters<typeof publishEndpoint>[1]): PublishedEndpoint {
  try {
    return publishEndpoint(folder, endpoint);
  } catch (cause) {
    server.close();
    const message =
      'The file endpoint.json cannot be written to the data folder; check the permissions of the folder and of the file.';
    throw diskFailureOf(cause, folder)?.failure ?? new Failure('unavailable', message, { cause });
  }
}
