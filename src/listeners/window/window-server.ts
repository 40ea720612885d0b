import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../../contract/failure.ts';
import { isOperation } from '../../contract/operations.ts';
import { isSubject } from '../../contract/token.ts';
import type { WindowChange } from '../../contract/window.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { MemoryStore } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';
import { readBearerToken } from '../bearer-token.ts';
import { CONNECTION_LIMITS } from '../limits.ts';
import type { LogEvent } from '../log-event.ts';
import { decodeComponent } from '../query.ts';
import { type BodyReader, rejectBody } from '../request-body.ts';
import { SECURITY_HEADERS, sendJson, endResponse } from '../response.ts';
import { CONTENT_SECURITY_POLICY } from './content-security-policy.ts';
import { WindowSessionStore } from './sessions.ts';
import { type StaticFile, readStaticFiles } from './static-files.ts';
import { toWindowResult, windowCaller } from './window-result.ts';

interface Deps {
  readonly perform: Perform;
  readonly bodies: BodyReader;
  readonly clock: Clock;
  readonly onChange: MemoryStore['onChange'];
  readonly onKey?: ((hear: () => void) => Disposable) | undefined;
  /** Where the built window lies. */
  readonly folder: string;
  readonly log: (trouble: LogEvent) => void;
}

/** One request to the window. */
interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: string;
  /** Where a refused method is told which ones are known. */
  readonly allow: string[];
}

const CALL = '/window/call/';
const OPEN = '/window/open';
const EVENTS = '/window/events';
const SUBJECT = /^subject=([^&]+)$/;

/** No subject is called so: what agents send leaves the owner's window its room. */
const WINDOW = ':window';

const PAGE_HEADERS = [
  'Content-Security-Policy',
  CONTENT_SECURITY_POLICY,
  'Referrer-Policy',
  'no-referrer',
  'Cross-Origin-Opener-Policy',
  'same-origin',
  'Cross-Origin-Resource-Policy',
  'same-origin',
] as const;

/**
 * The owner's window in a browser: its files, and a door that only its page passes, with the session that a one-time link was
 * exchanged for. Whatever it asks goes through `perform` as everything does.
 */
export class WindowServer implements Disposable {
  readonly #deps: Deps;
  readonly sessions: WindowSessionStore;
  readonly #changes = new DisposableStack();
  /** Each with the session that it listens by. */
  readonly #readers = new Map<ServerResponse, string>();
  #pages: ReadonlyMap<string, StaticFile> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.sessions = new WindowSessionStore(deps.clock, () => this.#endClosed());
    const changes = deps.onChange(({ namespace: { subject, session }, kind }) => {
      if (session === undefined) this.#tell({ namespace: subject, kind });
    });
    this.#changes.use(changes);
    this.#changes.use(deps.onKey?.(() => this.#tell({ namespace: '', kind: 'key' })));
  }

  /** Good once, for five minutes. What stands behind the # is sent to no server. */
  createLink(url: string): string {
    return `${url}/#link=${this.sessions.createLink()}`;
  }

  owns(path: string): boolean {
    return path.startsWith('/window/') || this.#files.has(path);
  }

  async handle(visit: Visit): Promise<void> {
    const { request, response, path } = visit;
    const page = this.#files.get(path);
    if (page) {
      requireMethod(visit, 'GET');
      rejectBody(request);
      show(response, page);
    } else if (path === OPEN) {
      requireMethod(visit, 'POST');
      await this.#open(visit);
    } else {
      const session = readBearerToken(request.rawHeaders);
      if (!this.sessions.use(session)) throw closed();
      await this.#within(session, visit);
    }
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
    for (const reader of this.#readers.keys()) endResponse(reader);
  }

  #tell(change: WindowChange): void {
    for (const reader of this.#readers.keys()) tell(reader, `data: ${JSON.stringify(change)}\n\n`);
  }

  /** A session that was ended hears nothing more, from now on and not from the next beat on. */
  #endClosed(): void {
    for (const [reader, session] of this.#readers) if (!this.sessions.isOpen(session)) endResponse(reader);
  }

  get #files(): ReadonlyMap<string, StaticFile> {
    // Read when the first page asks: most starts show no window.
    return (this.#pages ??= readStaticFiles(this.#deps.folder));
  }

  async #open({ request, response }: Visit): Promise<void> {
    const body = (await this.#deps.bodies.readJson(request, response, WINDOW)) as { link?: unknown } | null;
    const link = body?.link;
    const session = typeof link === 'string' ? this.sessions.open(link, request.headers['user-agent']) : undefined;
    if (session === undefined) {
      throw new Failure('invalid_token', 'This link was used already or is too old; run helmdeck-memory window for a new one.');
    }
    sendJson(response, 200, JSON.stringify({ session }));
  }

  async #within(session: string, visit: Visit): Promise<void> {
    if (visit.path === EVENTS) {
      requireMethod(visit, 'GET');
      rejectBody(visit.request);
      this.#follow(session, visit.response);
    } else if (visit.path.startsWith(CALL)) {
      requireMethod(visit, 'POST');
      await this.#call(visit);
    } else throw new Failure('not_found', 'The window has nothing at this path.');
  }

  async #call({ request, response, path, query }: Visit): Promise<void> {
    const subject = decodeComponent(SUBJECT.exec(query)?.[1] ?? '');
    if (!isSubject(subject)) throw new Failure('invalid_input', 'subject must say whose memory is open; send one.');
    const input = await this.#deps.bodies.readJson(request, response, WINDOW);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const [caller, operation] = [windowCaller(subject), path.slice(CALL.length)];
    const crossed = await toWindowResult(this.#deps.perform(caller, operation, input, { signal: gone.signal }));
    if (!crossed.ok && crossed.code === 'internal') {
      this.#deps.log({ operation: isOperation(operation) ? operation : 'none', client: 'window' });
    }
    if (!response.destroyed) sendJson(response, 200, JSON.stringify(crossed));
  }

  #follow(session: string, response: ServerResponse): void {
    if (this.#readers.size >= CONNECTION_LIMITS.streams)
      throw new Failure('rate_limited', 'Too many windows are open; close some of them.');
    const { clock } = this.#deps;
    let next: Disposable;
    const beat = (): void => {
      // Reading on is no use of the window: one that was left alone hears no more when its session ends.
      if (!this.sessions.isOpen(session)) return endResponse(response);
      tell(response, ': still here\n\n');
      next = clock.after(CONNECTION_LIMITS.keepAliveMs, beat);
    };
    next = clock.after(CONNECTION_LIMITS.keepAliveMs, beat);
    response.once('close', () => {
      next[Symbol.dispose]();
      this.#readers.delete(response);
    });
    response.writeHead(200, [...SECURITY_HEADERS, 'Content-Type', 'text/event-stream', 'Connection', 'close']);
    response.write(': changes are told from here on\n\n');
    this.#readers.set(response, session);
  }
}

function show(response: ServerResponse, { type, bytes }: StaticFile): void {
  response.writeHead(200, [...SECURITY_HEADERS, ...PAGE_HEADERS, 'Content-Type', type, 'Content-Length', `${bytes.length}`]);
  endResponse(response, bytes);
}

const closed = (): Failure =>
  new Failure('invalid_token', 'This window has been closed; run helmdeck-memory window for a new link.');

function requireMethod({ request, allow }: Visit, wanted: string): void {
  if (request.method === wanted) return;
  allow.push('Allow', wanted);
  throw new Failure('method_not_allowed', `This path does not know the method; send ${wanted}.`);
}

/** Who does not read is let go. */
function tell(reader: ServerResponse, frame: string): void {
  if (reader.destroyed || reader.writableEnded) return;
  if (reader.writableLength > CONNECTION_LIMITS.unreadStreamBytes) reader.destroy();
  else reader.write(frame);
}
