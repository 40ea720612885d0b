import type { ClientRequestArgs, IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import { ByteBuffer } from '../../core/file/byte-buffer.ts';
import type { Clock } from '../../core/time/clock.ts';
import { isOwnedByTrustedUser } from './port-owner.ts';
import { SidecarFailure } from './sidecar-failure.ts';

// Do not import node:http statically; src/listeners/listener.ts explains why.
const { Agent, request } = process.getBuiltinModule('node:http');

/**
 * Maximum bytes of a response: four times the size of 16 vectors of the largest known model. Reading a longer response would slow
 * down other callers.
 */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_LINE = 64 * 1024;

const Version = lazy(() => z.object({ version: z.string().regex(/^\d{1,6}\.\d{1,6}\.\d{1,6}[\w.+-]{0,40}$/) }));
const Tags = lazy(() => z.object({ models: z.array(z.object({ name: z.string(), digest: z.string().exactOptional() })) }));
const Embeddings = lazy(() =>
  z.object({ embeddings: z.array(z.array(z.number())), prompt_eval_count: z.int().min(0).default(0) }),
);
const Step = lazy(() =>
  z.object({
    status: z.string().default(''),
    error: z.string().exactOptional(),
    digest: z.string().exactOptional(),
    total: z.int().min(0).default(0),
    completed: z.int().min(0).default(0),
  }),
);
/** A model that Ollama has downloaded. The digest changes with its version. */
export interface InstalledModel {
  readonly name: string;
  readonly digest?: string;
}

export type PullStep = SchemaOutput<typeof Step>;

interface Deps {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** Rejects if the connection leads to the wrong process. No data is sent before this check. */
  readonly prove: () => Promise<void>;
}

interface RequestOptions {
  readonly path: string;
  readonly body?: object;
  /** Maximum milliseconds until the response. For a download, maximum milliseconds without data. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class ModelNotFound extends Error {}

/** Client for the endpoints of Ollama's API that the program uses. No other endpoints can be reached. */
export class OllamaClient {
  readonly #deps: Deps;
  readonly #agent: InstanceType<typeof Agent>;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#agent = new ProvedAgent(deps);
  }

  async version(timeoutMs: number, signal?: AbortSignal): Promise<string> {
    return (await this.#read(Version(), { path: '/api/version', timeoutMs, signal })).version;
  }

  async models(timeoutMs: number, signal?: AbortSignal): Promise<readonly InstalledModel[]> {
    return (await this.#read(Tags(), { path: '/api/tags', timeoutMs, signal })).models;
  }

  async embed(model: string, input: readonly string[], timeoutMs: number, signal?: AbortSignal) {
    const { embeddings: vectors, prompt_eval_count: tokens } = await this.#read(Embeddings(), {
      path: '/api/embed',
      body: { model, input, truncate: true },
      timeoutMs,
      signal,
    });
    return { vectors, tokens };
  }

  /** Downloads a model and yields each progress step. A download that was cancelled earlier continues where it stopped. */
  async *pull(model: string, timeoutMs: number, signal: AbortSignal): AsyncGenerator<PullStep> {
    using response = await this.#send({ path: '/api/pull', body: { model, stream: true }, timeoutMs, signal });
    let incomplete = '';
    for await (const chunk of response.chunks()) {
      response.renew();
      const lines = (incomplete + chunk.toString()).split('\n');
      incomplete = lines.pop() ?? '';
      if (incomplete.length > MAX_LINE) throw new SidecarFailure('broken');
      for (const line of lines) if (line.trim() !== '') yield parse(Step(), line);
    }
    if (incomplete.trim() !== '') yield parse(Step(), incomplete);
  }

  async #read<Schema extends z.ZodType>(schema: Schema, options: RequestOptions): Promise<z.output<Schema>> {
    using response = await this.#send(options);
    const body = new ByteBuffer();
    for await (const chunk of response.chunks()) {
      body.append(chunk);
      if (body.length > MAX_BYTES) throw new SidecarFailure('broken');
    }
    return parse(schema, body.bytes().toString());
  }

  async #send({ path, body, timeoutMs, signal }: RequestOptions): Promise<StreamedResponse> {
    const { host, port, clock } = this.#deps;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request({ host, port, path, method, headers, agent: this.#agent, ...(signal && { signal }) }, resolve);
    sent.on('error', reject).end(text);
    let response: IncomingMessage | undefined;
    const timeout = new IdleTimeout(clock, timeoutMs, () => (response ?? sent).destroy(new SidecarFailure('hanging')));
    try {
      response = await promise;
      const { statusCode = 0 } = response;
      if (statusCode === 404) throw new ModelNotFound();
      if (statusCode !== 200) throw new SidecarFailure('broken');
      return new StreamedResponse(response, timeout);
    } catch (error) {
      timeout[Symbol.dispose]();
      sent.destroy();
      throw error;
    }
  }
}

class StreamedResponse implements Disposable {
  readonly #response: IncomingMessage;
  readonly #timeout: IdleTimeout;

  constructor(response: IncomingMessage, timeout: IdleTimeout) {
    this.#response = response;
    this.#timeout = timeout;
  }

  async *chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of this.#response) yield chunk as Buffer;
  }

  renew(): void {
    this.#timeout.renew();
  }

  [Symbol.dispose](): void {
    this.#timeout[Symbol.dispose]();
    this.#response.destroy();
  }
}

class IdleTimeout implements Disposable {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #onTimeout: () => void;
  #timer: Disposable;

  constructor(clock: Clock, ms: number, onTimeout: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onTimeout = onTimeout;
    this.#timer = clock.after(ms, onTimeout);
  }

  renew(): void {
    this.#timer[Symbol.dispose]();
    this.#timer = this.#clock.after(this.#ms, this.#onTimeout);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }
}

/** Opens a new connection for each request, and refuses a connection that leads to the wrong process. */
class ProvedAgent extends Agent {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    super({ keepAlive: false });
    this.#deps = deps;
  }

  override createConnection(_options: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      // The cast is safe: Node's own callers also omit the stream when they pass an error.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }

  async #connect(): Promise<Socket> {
    const { host, port, prove } = this.#deps;
    const socket = connect({ host, port });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once('connect', resolve).once('error', reject);
    try {
      await promise;
      // Check the process after connecting, so that the check applies to the process that accepted the connection.
      await prove().catch((error: unknown) => {
        // Ignore the error of a closed socket: a process that has just exited no longer owns its port.
        if (!socket.destroyed) throw error;
      });
      // Without this error, the request would never end, because a closed socket emits no more events.
      if (socket.destroyed) throw new Error('The connection closed during the check.');
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new SidecarFailure('broken');
  }
}

/**
 * Creates a client for an Ollama that is already running and that the owner chose. Before each request, asks the system which
 * user runs that Ollama.
 */
export function createAdoptedClient(url: URL, clock: Clock): OllamaClient {
  const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
  const port = Number(url.port || 80);
  const prove = async (): Promise<void> => {
    if (!(await isOwnedByTrustedUser(port))) throw new SidecarFailure('foreign');
  };
  return new OllamaClient({ host, port, clock, prove });
}
