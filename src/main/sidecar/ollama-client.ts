import type { ClientRequestArgs, IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import { ByteBuffer } from '../../core/file/byte-buffer.ts';
import type { Clock } from '../../core/time/clock.ts';
import { SidecarFailure } from './sidecar-failure.ts';

// Not imported, for the reason that stands in src/listeners/listener.ts.
const { Agent, request } = process.getBuiltinModule('node:http');

/** Four times the size of sixteen of the longest known vectors. Reading more would slow down other callers. */
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_LINE = 64 * 1024;

const Version = lazy(() => z.object({ version: z.string().regex(/^\d{1,6}\.\d{1,6}\.\d{1,6}[\w.+-]{0,40}$/) }));
const Tags = lazy(() => z.object({ models: z.array(z.object({ name: z.string() })) }));
const Answer = lazy(() => z.object({ embeddings: z.array(z.array(z.number())), prompt_eval_count: z.int().min(0).default(0) }));
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

interface Asked {
  readonly path: string;
  readonly body?: object;
  /** For a download: the longest time without data. */
  readonly patienceMs: number;
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

  async version(patienceMs: number, signal?: AbortSignal): Promise<string> {
    return (await this.#read(Version(), { path: '/api/version', patienceMs, signal })).version;
  }

  async models(patienceMs: number, signal?: AbortSignal): Promise<readonly string[]> {
    return (await this.#read(Tags(), { path: '/api/tags', patienceMs, signal })).models.map(({ name }) => name);
  }

  async embed(model: string, input: readonly string[], patienceMs: number, signal?: AbortSignal) {
    const { embeddings: vectors, prompt_eval_count: tokens } = await this.#read(Answer(), {
      path: '/api/embed',
      body: { model, input, truncate: true },
      patienceMs,
      signal,
    });
    return { vectors, tokens };
  }

  /** Yields each progress step. Ollama resumes a cancelled download where it stopped. */
  async *pull(model: string, patienceMs: number, signal: AbortSignal): AsyncGenerator<PullStep> {
    using response = await this.#ask({ path: '/api/pull', body: { model, stream: true }, patienceMs, signal });
    let held = '';
    for await (const chunk of response.chunks()) {
      response.renew();
      const lines = (held + chunk.toString()).split('\n');
      held = lines.pop() ?? '';
      if (held.length > MOST_LINE) throw new SidecarFailure('broken');
      for (const line of lines) if (line.trim() !== '') yield parse(Step(), line);
    }
    if (held.trim() !== '') yield parse(Step(), held);
  }

  async #read<Schema extends z.ZodType>(schema: Schema, asked: Asked): Promise<z.output<Schema>> {
    using response = await this.#ask(asked);
    const body = new ByteBuffer();
    for await (const chunk of response.chunks()) {
      body.append(chunk);
      if (body.length > MOST_BYTES) throw new SidecarFailure('broken');
    }
    return parse(schema, body.bytes().toString());
  }

  async #ask({ path, body, patienceMs, signal }: Asked): Promise<Answering> {
    const { host, port, clock } = this.#deps;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    const method = body === undefined ? 'GET' : 'POST';
    const question = request({ host, port, path, method, headers, agent: this.#agent, ...(signal && { signal }) }, resolve);
    question.on('error', reject).end(text);
    let response: IncomingMessage | undefined;
    const patience = new Patience(clock, patienceMs, () => (response ?? question).destroy(new SidecarFailure('hanging')));
    try {
      response = await promise;
      const { statusCode = 0 } = response;
      if (statusCode === 404) throw new ModelNotFound();
      if (statusCode !== 200) throw new SidecarFailure('broken');
      return new Answering(response, patience);
    } catch (error) {
      patience[Symbol.dispose]();
      question.destroy();
      throw error;
    }
  }
}

class Answering implements Disposable {
  readonly #response: IncomingMessage;
  readonly #patience: Patience;

  constructor(response: IncomingMessage, patience: Patience) {
    this.#response = response;
    this.#patience = patience;
  }

  async *chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of this.#response) yield chunk as Buffer;
  }

  /** Restarts the timeout. */
  renew(): void {
    this.#patience.renew();
  }

  [Symbol.dispose](): void {
    this.#patience[Symbol.dispose]();
    this.#response.destroy();
  }
}

/** A timeout that can be restarted. */
class Patience implements Disposable {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #over: () => void;
  #waiting: Disposable;

  constructor(clock: Clock, ms: number, over: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#over = over;
    this.#waiting = clock.after(ms, over);
  }

  renew(): void {
    this.#waiting[Symbol.dispose]();
    this.#waiting = this.#clock.after(this.#ms, this.#over);
  }

  [Symbol.dispose](): void {
    this.#waiting[Symbol.dispose]();
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
      if (socket.destroyed) throw new Error('The connection ended while it was looked at.');
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
