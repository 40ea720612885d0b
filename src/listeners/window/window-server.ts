import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../../contract/failure.ts';
import { isOperation } from '../../contract/operations.ts';
import { isSubject } from '../../contract/token.ts';
import type { WindowChange } from '../../contract/window.ts';
import { hasScope } from '../../core/access/caller.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { MemoryStore } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';
import { EventStream } from '../event-stream.ts';
import { readBearerToken } from '../guard.ts';
import { CONNECTION_LIMITS } from '../limits.ts';
import { type BodyReader, rejectBody } from '../request-body.ts';
import { abortOnClose, endResponse, SECURITY_HEADERS, sendJson } from '../response.ts';
import { API_PATH, decodeComponent } from '../rest-routes.ts';
import type { LogEvent, Route } from '../route.ts';
import { CONTENT_SECURITY_POLICY } from './content-security-policy.ts';
import { WindowSessionStore } from './sessions.ts';
import { readStaticFiles, type StaticFile } from './static-files.ts';
import { toWindowResult, windowCaller } from './window-result.ts';

interface Deps {
  readonly perform: Perform;
  readonly bodies: BodyReader;
  readonly clock: Clock;
  readonly onChange: MemoryStore['onChange'];
  readonly onKeyChange?: ((listener: () => void) => Disposable) | undefined;
  readonly folder: string;
  readonly log: (event: LogEvent) => void;
}

interface WindowRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: string;
  /** The handler adds the name and value of the Allow header here when it refuses the method. */
  readonly allow: string[];
}

const CALL_PATH = '/window/call/';
const OPEN_PATH = '/window/open';
const EVENTS_PATH = '/window/events';
const SUBJECT = /^subject=([^&]+)$/;

/**
 * The subject to which the window's request bodies are counted. No agent can have this subject, so agents cannot use up the
 * window's limit.
 */
const BODY_SUBJECT = ':window';

const FILE_HEADERS = [
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
 * Serves the owner's window to a browser: static files, operation calls and change events. Calls and events require a session.
 * The page gets the session in exchange for a single-use link.
 */
export class WindowServer implements Disposable {
  readonly #deps: Deps;
  readonly sessions: WindowSessionStore;
  readonly #changes = new DisposableStack();
  /** The open event streams, each with the secret of its session. */
  readonly #streams = new Map<EventStream, string>();
  #staticFiles: ReadonlyMap<string, StaticFile> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.sessions = new WindowSessionStore(deps.clock, () => this.#endClosedStreams());
    const changes = deps.onChange(({ namespace: { subject, session }, kind }) => {
      if (session === undefined) this.#send({ namespace: subject, kind });
    });
    this.#changes.use(changes);
    this.#changes.use(deps.onKeyChange?.(() => this.#send({ namespace: '', kind: 'key' })));
  }

  /**
   * Creates a single-use link that is valid for five minutes. The secret is after the `#`, because browsers never send that part
   * to a server.
   */
  createLink(url: string): string {
    return `${url}/#link=${this.sessions.createLink()}`;
  }

  owns(path: string): boolean {
    return path.startsWith('/window/') || this.#files.has(path);
  }

  async handle(windowRequest: WindowRequest): Promise<void> {
    const { request, response, path } = windowRequest;
    const file = this.#files.get(path);
    if (file) {
      requireMethod(windowRequest, 'GET');
      rejectBody(request);
      sendFile(response, file);
    } else if (path === OPEN_PATH) {
      requireMethod(windowRequest, 'POST');
      await this.#open(windowRequest);
    } else {
      const session = readBearerToken(request.rawHeaders);
      if (!this.sessions.use(session)) throw sessionEnded();
      await this.#handleInSession(session, windowRequest);
    }
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
    for (const stream of this.#streams.keys()) stream.end();
  }

  #send(change: WindowChange): void {
    for (const stream of this.#streams.keys()) stream.send(JSON.stringify(change));
  }

  /** Ends the event streams whose session has ended, without waiting for their next keep-alive. */
  #endClosedStreams(): void {
    for (const [stream, session] of this.#streams) if (!this.sessions.isOpen(session)) stream.end();
  }

  get #files(): ReadonlyMap<string, StaticFile> {
    // The files are read on first use, because the window is seldom opened in a browser.
    return (this.#staticFiles ??= readStaticFiles(this.#deps.folder));
  }

  async #open({ request, response }: WindowRequest): Promise<void> {
    const body = (await this.#deps.bodies.readJson(request, response, BODY_SUBJECT)) as { link?: unknown } | null;
    const link = body?.link;
    const session = typeof link === 'string' ? this.sessions.open(link, request.headers['user-agent']) : undefined;
    if (session === undefined) {
      throw new Failure(
        'invalid_token',
        'This link was already used or has expired; run helmdeck-memory window to get a new link.',
      );
    }
    sendJson(response, 200, JSON.stringify({ session }));
  }

  async #handleInSession(session: string, windowRequest: WindowRequest): Promise<void> {
    if (windowRequest.path === EVENTS_PATH) {
      requireMethod(windowRequest, 'GET');
      rejectBody(windowRequest.request);
      this.#streamEvents(session, windowRequest.response);
    } else if (windowRequest.path.startsWith(CALL_PATH)) {
      requireMethod(windowRequest, 'POST');
      await this.#call(windowRequest);
    } else throw new Failure('not_found', 'Unknown path; reload the window.');
  }

  async #call({ request, response, path, query }: WindowRequest): Promise<void> {
    const subject = decodeComponent(SUBJECT.exec(query)?.[1] ?? '');
    if (!isSubject(subject)) {
      throw new Failure('invalid_input', 'The query must have the field `subject`; send the subject whose memory is shown.');
    }
    const input = await this.#deps.bodies.readJson(request, response, BODY_SUBJECT);
    const operation = path.slice(CALL_PATH.length);
    const signal = abortOnClose(response);
    const result = await toWindowResult(this.#deps.perform(windowCaller(subject), operation, input, { signal }));
    if (!result.ok && result.code === 'internal') {
      this.#deps.log({ operation: isOperation(operation) ? operation : 'none', client: 'window' });
    }
    if (!response.destroyed) sendJson(response, 200, JSON.stringify(result));
  }

  #streamEvents(session: string, response: ServerResponse): void {
    if (this.#streams.size >= CONNECTION_LIMITS.streams) {
      throw new Failure('rate_limited', 'The window is open in too many browser tabs; close some of them.');
    }
    const { clock } = this.#deps;
    const stream = new EventStream(response);
    const keepAlive = (): void => {
      // An open event stream does not renew the session, so the session of an unused window expires and its stream ends.
      if (!this.sessions.isOpen(session)) return stream.end();
      stream.keepAlive();
      timer = clock.after(CONNECTION_LIMITS.keepAliveMs, keepAlive);
    };
    let timer = clock.after(CONNECTION_LIMITS.keepAliveMs, keepAlive);
    response.once('close', () => {
      timer[Symbol.dispose]();
      this.#streams.delete(stream);
    });
    this.#streams.set(stream, session);
  }
}

function sendFile(response: ServerResponse, { type, bytes }: StaticFile): void {
  response.writeHead(200, [...SECURITY_HEADERS, ...FILE_HEADERS, 'Content-Type', type, 'Content-Length', `${bytes.length}`]);
  endResponse(response, bytes);
}

const sessionEnded = (): Failure =>
  new Failure('invalid_token', 'This window session has ended; run helmdeck-memory window to get a new link.');

function requireMethod({ request, allow }: WindowRequest, method: string): void {
  if (request.method === method) return;
  allow.push('Allow', method);
  throw new Failure('method_not_allowed', `This path does not support the method; send ${method}.`);
}

/** The route with which the owner's other programs, such as the command line, create a link to the window. */
export const windowLinkRoute = (createLink: () => string | undefined, bodies: BodyReader): Route => ({
  method: 'POST',
  path: `${API_PATH}/window`,
  transport: 'owner',
  operation: 'window',
  async handle({ caller, request, response }) {
    if (!hasScope(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'Only the owner is allowed to do this; use a token with the scope `admin`.');
    }
    // Reads the unused body with the usual limits. Otherwise Node would read it to its end, however long it is.
    await bodies.readJson(request, response, caller.subject);
    const link = createLink();
    if (link !== undefined) return { link };
    throw new Failure('not_found', 'The window has not been built; run `npm run build` first.');
  },
});
