import type { ClientRequestArgs, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Failure, type FailureCode, failures } from '../contract/failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../contract/operations.ts';

// Not imported, for the reason that stands in server.ts: who starts the program asks first whether it runs already.
const { Agent, request } = process.getBuiltinModule('node:http');

interface Deps {
  readonly url: string;
  readonly pid: number;
  readonly token: string;
  /** A connection that has proved where it leads. */
  readonly connect: () => Promise<Socket>;
}

/** The owner's way to the running program: every operation there is, and the failures it answers as they were thrown there. */
export class OwnerClient implements Disposable {
  readonly url: string;
  /** The process that answers. */
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
    // The program parsed what it answers against the same table; it has proved to be that program.
    return (await this.#ask(`/api/v1/owner/${name}`, JSON.stringify(input))) as OperationOutput<Name>;
  }

  /** Opens the window in a browser, once. */
  async windowLink(): Promise<string> {
    const { link } = (await this.#ask('/api/v1/window', '')) as { link: string };
    return link;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #ask(path: string, body: string): Promise<unknown> {
    const { status, text, retryAfter } = await this.#send(path, body);
    const answer = parsed(text);
    if (status === 200) return answer;
    throw failureOf(answer, retryAfter);
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
      throw new Failure('session_unavailable', 'The program that holds this memory has ended; start it and try again.', {
        cause,
      });
    }
  }
}

/** Sends nothing before the connection has proved where it leads. */
export class ProvedHttpAgent extends Agent {
  readonly #connect: () => Promise<Socket>;

  constructor(connect: () => Promise<Socket>) {
    super({ keepAlive: true });
    this.#connect = connect;
  }

  override createConnection(_options: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      // Node's own callers hand in no stream with an error either.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failureOf(answer: unknown, retryAfter: number | undefined): Failure {
  const { error, message } = (answer ?? {}) as { error?: unknown; message?: unknown };
  if (isCode(error) && typeof message === 'string') {
    return new Failure(error, message, retryAfter === undefined ? {} : { retryAfter });
  }
  return new Failure('internal', 'The program that holds this memory gave an answer that is not one of its own; start it again.');
}

const isCode = (code: unknown): code is FailureCode => typeof code === 'string' && Object.hasOwn(failures, code);
