import type { ClientRequestArgs, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Failure, type FailureCode, failures } from '../contract/failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../contract/operations.ts';

// `node:http` is loaded without `import` (see listener.ts) to save time, because every startup looks for a running instance.
const { Agent, request } = process.getBuiltinModule('node:http');

interface Deps {
  readonly url: string;
  readonly pid: number;
  readonly token: string;
  /** Opens a connection and verifies that the other side is the running program. */
  readonly connect: () => Promise<Socket>;
}

/** Calls operations of the running program as the owner. Throws the failures that the program returns. */
export class OwnerClient implements Disposable {
  readonly url: string;
  readonly pid: number;
  readonly #token: string;
  readonly #agent: ProvedHttpAgent;

  constructor({ url, pid, token, connect }: Deps) {
    this.url = url;
    this.pid = pid;
    this.#token = token;
    this.#agent = new ProvedHttpAgent(connect);
  }

  async call<Name extends OperationName>(name: Name, input: OperationRequest<Name>): Promise<OperationOutput<Name>> {
    // The output is not validated again, because the running program has validated it.
    return (await this.#post(`/api/v1/owner/${name}`, JSON.stringify(input))) as OperationOutput<Name>;
  }

  /** Creates a single-use link that opens the window in a browser. */
  async windowLink(): Promise<string> {
    const { link } = (await this.#post('/api/v1/window', '')) as { link: string };
    return link;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #post(path: string, input: string): Promise<unknown> {
    const { status, text, retryAfter } = await this.#send(path, input);
    const body = parseJson(text);
    if (status === 200) return body;
    throw failureOf(body, retryAfter);
  }

  async #send(path: string, body: string): Promise<{ status: number; text: string; retryAfter: number | undefined }> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    };
    request(`${this.url}${path}`, { method: 'POST', headers, agent: this.#agent }, resolve).once('error', reject).end(body);
    try {
      const response = await promise;
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const after = response.headers['retry-after'];
      return {
        status: response.statusCode ?? 0,
        text: Buffer.concat(chunks).toString(),
        retryAfter: after === undefined ? undefined : Number(after),
      };
    } catch (cause) {
      if (cause instanceof Failure) throw cause;
      throw new Failure('session_unavailable', 'Helmdeck Memory has stopped; start it and try again.', {
        cause,
      });
    }
  }
}

/** An HTTP agent that uses only connections on which the running program has proved its identity. */
export class ProvedHttpAgent extends Agent {
  readonly #connect: () => Promise<Socket>;

  constructor(connect: () => Promise<Socket>) {
    super({ keepAlive: true });
    this.#connect = connect;
  }

  override createConnection(_options: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      // Node expects only the error, although the callback's type requires a stream.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failureOf(body: unknown, retryAfter: number | undefined): Failure {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  if (isCode(error) && typeof message === 'string') {
    return new Failure(error, message, retryAfter === undefined ? {} : { retryAfter });
  }
  return new Failure('internal', 'The running Helmdeck Memory sent an invalid response; restart it.');
}

const isCode = (code: unknown): code is FailureCode => typeof code === 'string' && Object.hasOwn(failures, code);
