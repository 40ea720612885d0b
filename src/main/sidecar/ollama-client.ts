import type { ClientRequestArgs, IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import { ByteBuffer } from '../../core/file/byte-buffer.ts';
import type { Clock } from '../../core/time/clock.ts';
import { isOwnedByTrustedUser } from './port-owner.ts';
import { SidecarFailure } from './sidecar-failure.ts';

// Not imported, for the reason given in src/listeners/listener.ts.
const { Agent, request } = process.getBuiltinModule('node:http');

/** Four times the size of sixteen of the longest known vectors. Reading more would slow down other callers. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_LINE = 64 * 1024;

const Version = lazy(() => z.object({ version: z.string().regex(/^\d{1,6}\.\d{1,6}\.\d{1,6}[\w.+-]{0,40}$/) }));
const Tags = lazy(() => z.object({ models: z.array(z.object({ name: z.string() })) }));
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
export type PullStep = SchemaOutput<typeof Step>;

interface Deps {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** Rejects if the connection leads to the wrong process. Nothing is sent before. */
  readonly prove: () => Promise<void>;
}

interface RequestOptions {
  readonly path: string;
  readonly body?: object;
  /** For a download: the longest time without data. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class ModelNotFound extends Error {}

/** The Ollama API that we use; other endpoints are not reachable through it. */
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

  async models(timeoutMs: number, signal?: AbortSignal): Promise<readonly string[]> {
    return (await this.#read(Tags(), { path: '/api/tags', timeoutMs, signal })).models.map(({ name }) => name);
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

  /** Yields each progress step. Ollama resumes a cancelled download where it stopped. */
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

  /** Restarts the timeout. */
  renew(): void {
    this.#timeout.renew();
  }

  [Symbol.dispose](): void {
    this.#timeout[Symbol.dispose]();
    this.#response.destroy();
  }
}

/** A timeout that can be restarted. */
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

/** Opens a new connection for each request and refuses one that leads to the wrong process. */
class ProvedAgent extends Agent {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    super({ keepAlive: false });
    this.#deps = deps;
  }

  override createConnection(_options: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      // Node's own callers pass no stream with an error either.
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
      // Check only now: the current listener has accepted the connection.
      await prove().catch((error: unknown) => {
        // A process that has just exited no longer owns its port, which does not make it an impostor.
        if (!socket.destroyed) throw error;
      });
      // A socket that closed meanwhile emits no further event, so the request would never end.
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

/** Connects to an Ollama that is already running. The owner chose it; the system confirms which user runs it. */
export function createAdoptedClient(url: URL, clock: Clock): OllamaClient {
  const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
  const port = Number(url.port || 80);
  const prove = async (): Promise<void> => {
    if (!(await isOwnedByTrustedUser(port))) throw new SidecarFailure('foreign');
  };
  return new OllamaClient({ host, port, clock, prove });
}
