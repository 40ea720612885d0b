import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { isReadable } from '../../src/contract/status.ts';
import type { TokenScope } from '../../src/contract/token.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import type { FactMeaning } from '../../src/core/meaning/nearest.ts';
import type { ClientConnections } from '../../src/core/operations/clients-port.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import type { Embeddings } from '../../src/core/operations/embeddings-port.ts';
import type { MeaningModel, MeaningVectors } from '../../src/core/operations/meaning-port.ts';
import type { BriefSettings, OwnerSettings, UpdateSource } from '../../src/core/operations/memory.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import type { PackServicesOptions } from '../../src/core/packs/pack-services.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import type { MemoryStore } from '../../src/core/store/store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { type Listener, type ListenerDeps, startListener } from '../../src/listeners/listener.ts';
import { tempFolder } from './temp-folder.ts';

export interface ServedMemory {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  readonly perform: Perform;
  readonly listener: Listener;
  /** The owner's token. */
  readonly owner: string;
  /** Mints a token. */
  readonly token: (subject?: string, scopes?: TokenScope[], client?: string) => Promise<string>;
}

interface Surrounded {
  readonly tokens: TokenRegistry;
  readonly folder: string;
  readonly store: MemoryStore;
}

export interface ServeOptions extends Partial<Omit<ListenerDeps, 'perform'>> {
  readonly store?: MemoryStore;
  /** Wraps the real core. */
  readonly wrapPerform?: (perform: Perform) => Perform;
  readonly writesPerMinute?: number;
  readonly packs?: Omit<PackServicesOptions, 'store' | 'clock'>;
  readonly settings?: OwnerSettings;
  /** The home folder with the clients to connect. */
  readonly clients?: (surrounded: Surrounded) => ClientConnections;
  readonly embeddings?: Embeddings;
  /** Finds facts by their meaning. If absent, facts are found by their words only. */
  readonly meaning?: FactMeaning | undefined;
  readonly brief?: BriefSettings;
  readonly meaningModel?: MeaningModel;
  readonly meaningVectors?: MeaningVectors;
  readonly updates?: UpdateSource | undefined;
}

const VERSION = '1.2.3';

/** Serves a memory on its own port until the test ends. */
export async function serve({
  store: given,
  wrapPerform: around,
  writesPerMinute,
  packs,
  settings,
  clients,
  embeddings,
  meaning,
  meaningModel,
  meaningVectors,
  updates,
  brief,
  clock = systemClock,
  ...over
}: ServeOptions = {}): Promise<ServedMemory> {
  const store = given ?? new RamStore(clock);
  const tokens = over.tokens ?? (await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false }));
  const folder = over.folder ?? tempFolder();
  const { perform: inner, packs: opened } = createCore({
    store,
    tokens,
    finder: new Finder(store, { meaning }),
    clock,
    writesPerMinute,
    ...(packs && { packs }),
    ...(settings && { settings }),
    ...(clients && { clients: async () => clients({ tokens, folder, store }) }),
    ...(embeddings && { embeddings }),
    ...(meaningModel && { meaning: meaningModel }),
    ...(meaningVectors && { meaningVectors }),
    ...(brief && { brief }),
    program: {
      version: VERSION,
      listening: () => ({ at: 'listening', url: listener.url }),
      updates,
      windowSessions: () => listener.windowSessions,
    },
  });
  const perform = around?.(inner) ?? inner;
  const listener = await startListener({
    address: '127.0.0.1:0',
    version: VERSION,
    onChange: (hear) => store.onChange(hear),
    onKeyChange: (hear) => store.onKeyChange(hear),
    // A test that replaces `perform` decides itself what `status` reports.
    ...(!around && { isReadable: () => isReadable(store.status()) }),
    catalogue: opened.engine.catalogue,
    ...over,
    perform,
    tokens,
    folder,
    clock,
  });
  onTestFinished(() => listener.close());
  return {
    url: listener.url,
    port: Number(new URL(listener.url).port),
    folder,
    store,
    tokens,
    perform,
    listener,
    owner: tokens.ownerToken(),
    token: async (subject = 'me', scopes = ['memory:read', 'memory:write'], client = 'test') =>
      (await tokens.mint({ name: 'a test', client, subject, scopes, days: 1 })).token,
  };
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body parsed as JSON; undefined if it is not JSON. */
  readonly json: Record<string, unknown> & { readonly error?: string; readonly message?: string };
}

export interface HttpRequest {
  readonly method?: string;
  readonly token?: string;
  /** Alternating names and values, so that a header can occur twice. */
  readonly headers?: readonly string[];
  /** Objects are sent as JSON. */
  readonly body?: object | string | Buffer;
  readonly agent?: Agent;
}

/** Sends one request like an ordinary HTTP client, on a new connection. */
export function sendRequest(
  url: string,
  path: string,
  { method, token, headers = [], body, agent }: HttpRequest = {},
): Promise<HttpResponse> {
  const bytes = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const named = new Set(headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  const all = [
    ...(named.has('host') ? [] : ['Host', new URL(url).host]),
    ...(token === undefined ? [] : ['Authorization', `Bearer ${token}`]),
    ...(bytes === undefined || named.has('content-type') ? [] : ['Content-Type', 'application/json']),
    ...(bytes === undefined || named.has('transfer-encoding') || named.has('content-length')
      ? []
      : ['Content-Length', `${Buffer.byteLength(bytes)}`]),
    // Without a length, Node's client would use chunked encoding.
    ...(bytes === undefined && method === 'POST' && !named.has('transfer-encoding') ? ['Content-Length', '0'] : []),
    ...headers,
  ];
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const { hostname, port } = new URL(url);
  const options = { host: hostname.replace(/[[\]]/g, ''), port, path, method: method ?? (bytes === undefined ? 'GET' : 'POST') };
  const sent = request({ ...options, headers: all, agent: agent ?? false, setHost: false }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
    });
  });
  sent.on('error', reject).end(bytes);
  return promise;
}

/** Returns the JSON of a body, or an empty object if the body is not JSON. */
export function parsed(text: string): HttpResponse['json'] {
  try {
    return JSON.parse(text) as HttpResponse['json'];
  } catch {
    return {};
  }
}

export interface RawConnection {
  readonly socket: Socket;
  /** The data received so far. */
  readonly text: () => string;
  write(text: string | Buffer): void;
  /** Waits until the received data contains this. */
  waitFor(sign: string | RegExp): Promise<string>;
  /** Waits until the server has closed the connection. Returns how long that took, in milliseconds. */
  waitForEnd(): Promise<number>;
}

/** A raw TCP connection, which can send anything. */
export async function openConnection(port: number, host = '127.0.0.1'): Promise<RawConnection> {
  const socket = connect({ host, port, allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  const start = performance.now();
  let text = '';
  let over = false;
  const hearers = new Set<() => void>();
  const tell = (): void => hearers.forEach((hear) => hear());
  const end = (): void => {
    over = true;
    tell();
  };
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    tell();
  });
  socket.on('error', end).on('end', end).on('close', end);
  const when = <T>(look: () => T | undefined): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const hear = (): void => {
      const found = look();
      if (found !== undefined) resolve(found);
      else if (over) reject(new Error(`The connection ended after: ${text}`));
      else return;
      hearers.delete(hear);
    };
    hearers.add(hear);
    hear();
    return promise;
  };
  await new Promise((resolve) => socket.once('connect', resolve).once('error', resolve));
  return {
    socket,
    text: () => text,
    write: (more) => void socket.write(more),
    waitFor: (sign) => when(() => ((typeof sign === 'string' ? text.includes(sign) : sign.test(text)) ? text : undefined)),
    waitForEnd: () => when(() => (over ? performance.now() - start : undefined)),
  };
}

/** All routes. `openapi.test.ts` checks that the list is complete. */
export const ALL_ROUTES: readonly (readonly [method: string, path: string])[] = [
  ['POST', '/api/v1/memory/store'],
  ['POST', '/api/v1/memory/forget'],
  ['GET', '/api/v1/memory'],
  ['GET', '/api/v1/memory/callers'],
  ['GET', '/api/v1/memory/facts'],
  ['GET', '/api/v1/memory/fact'],
  ['PATCH', '/api/v1/memory/fact'],
  ['GET', '/api/v1/memory/history'],
  ['GET', '/api/v1/memory/search'],
  ['GET', '/api/v1/memory/context'],
  ['GET', '/api/v1/memory/export'],
  ['POST', '/api/v1/memory/import'],
  ['POST', '/api/v1/brief'],
  ['POST', '/api/v1/memory/undo'],
  ['GET', '/api/v1/inbox'],
  ['POST', '/api/v1/inbox/one/accept'],
  ['DELETE', '/api/v1/inbox/one'],
  ['GET', '/api/v1/activity'],
  ['GET', '/api/v1/status'],
  ['GET', '/api/v1/packs'],
  ['GET', '/api/v1/packs/test.echo'],
  ['POST', '/api/v1/packs/test.echo'],
  ['DELETE', '/api/v1/sessions/one'],
  ['GET', '/api/v1/memory/defaults'],
  ['GET', '/api/v1/pipelines'],
  ['POST', '/api/v1/pipelines'],
  ['GET', '/api/v1/pipelines/one'],
  ['DELETE', '/api/v1/pipelines/one'],
  ['POST', '/api/v1/pipelines/one/adopt'],
  ['POST', '/api/v1/pipelines/one/run'],
  ['GET', '/api/v1/pipeline-runs'],
  ['GET', '/api/v1/pipeline-runs/one'],
  ['DELETE', '/api/v1/pipeline-runs/one'],
  ['POST', '/v1/embeddings'],
  ['GET', '/api/v1/events'],
  ['GET', '/api/v1/tokens'],
  ['POST', '/api/v1/tokens'],
  ['DELETE', '/api/v1/tokens/one'],
  ['GET', '/api/v1/window-sessions'],
  ['DELETE', '/api/v1/window-sessions/one'],
  ['GET', '/api/v1/clients'],
  ['POST', '/api/v1/lock'],
  ['POST', '/api/v1/unlock'],
  ['POST', '/api/v1/key/rotate'],
  ['POST', '/api/v1/backup'],
  ['POST', '/api/v1/clock'],
  ['POST', '/api/v1/updates'],
  ['POST', '/api/v1/window'],
  ['GET', '/api/v1/version'],
  ['GET', '/api/v1/openapi.json'],
  ['POST', '/api/v1/owner/remember'],
];

/** Waits for a condition, with a timeout that is long enough for a busy machine. */
export const EVENTUALLY = { timeout: 45_000, interval: 20 };
