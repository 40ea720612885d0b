import { randomBytes } from 'node:crypto';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type {
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
  Progress,
  ProgressToken,
  RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { Failure } from '../../contract/failure.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { EventStream } from '../event-stream.ts';
import type { RpcMessage } from './message.ts';
import { rpcErrorResponse, type RpcErrorResponse } from './rpc.ts';

export type RpcResponse = JSONRPCMessage | RpcErrorResponse;

/** Requests of one session that are not answered yet. */
const MOST_PENDING = 256;

interface Pending {
  /** As the client numbered it. */
  readonly id: RequestId;
  readonly method: string;
  readonly take: (answer: RpcResponse | undefined) => void;
  readonly tell: SendBeforeResponse;
}

/** Says something about a request on the way that its answer will go. False where there is no such way. */
export type SendBeforeResponse = (text: string) => boolean;

const nowhere: SendBeforeResponse = () => false;

/** Answers go back with the question, or by the stream that opened the session: whoever mixes them would wait for ever. */
export type TransportKind = 'http' | 'sse';

export interface SessionOwner {
  readonly caller: Caller;
  readonly transportKind: TransportKind;
  /** Tells the token from every other, also from one with the same id. */
  readonly token: string;
}

/**
 * One client's conversation, and the SDK's way to its wire. Requests get numbers of our own before the SDK sees them, so two
 * that a client numbers alike are never taken for each other.
 */
export class Session implements Transport {
  readonly id = randomBytes(24).toString('base64url');
  readonly owner: SessionOwner;
  /** What its client wants to hear of. */
  readonly subscriptions = new Set<string>();
  /** Steady milliseconds. */
  usedAt: number;
  /** The protocol both sides agreed on. */
  version: string | undefined;
  onmessage?: Transport['onmessage'];
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #pending = new Map<number, Pending>();
  /** What was said that nobody asked for, each text once, with the number of its last time. */
  readonly #news = new Map<string, number>();
  #said = 0;
  #heard = 0;
  #asked = 0;
  #stream: EventStream | undefined;
  readonly #over: () => void;
  #ended = false;

  constructor(owner: SessionOwner, now: number, over: () => void) {
    this.owner = owner;
    this.usedAt = now;
    this.#over = over;
  }

  get busy(): boolean {
    return this.#pending.size > 0 || this.#stream?.isOpen === true;
  }

  /** Hands messages to the SDK; fulfils with the answers, in the order in which they are ready, when all are there. */
  async request(messages: readonly RpcMessage[], tell = nowhere): Promise<RpcResponse[]> {
    const answers: RpcResponse[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    let waiting = 1;
    const take = (answer: RpcResponse | undefined): void => {
      if (answer) answers.push(answer);
      waiting -= 1;
      if (waiting === 0) resolve();
    };
    for (const message of messages) {
      if (message.kind === 'request') waiting += 1;
      if (message.kind === 'broken') answers.push(message.answer);
      else this.receive(message, take, tell);
    }
    take(undefined);
    await promise;
    return answers;
  }

  /** `take` gets the answer to a request, or nothing if its client took the request back. */
  receive(message: RpcMessage, take: (answer: RpcResponse | undefined) => void, tell = nowhere): void {
    if (message.kind === 'notification') this.#note(message.method, message.params);
    if (message.kind !== 'request') return;
    const { id, method, params } = message;
    if (this.#ended) return take(rpcErrorResponse(id, gone()));
    if (this.#pending.size >= MOST_PENDING) return take(rpcErrorResponse(id, tooMany()));
    this.#asked += 1;
    this.#pending.set(this.#asked, { id, method, take, tell });
    const request: JSONRPCRequest = { jsonrpc: '2.0', id: this.#asked, method, ...(params && { params }) };
    this.onmessage?.(request);
  }

  /** Where what nobody asked for goes from now on. What a reader has not heard yet comes first; `last` is what they heard last. */
  attachStream(stream: EventStream, last = this.#heard): void {
    this.#stream?.end();
    this.#stream = stream;
    for (const [text, number] of this.#news) if (number > last) stream.send('message', text, number);
    this.#heard = this.#said;
  }

  detachStream(stream: EventStream): void {
    if (this.#stream === stream) this.#stream = undefined;
  }

  /** An answer, where answers go by the stream. */
  sendOnStream(answer: RpcResponse): void {
    this.#stream?.send('message', JSON.stringify(answer));
  }

  /** Tells the client something it did not ask for, now or when it listens again. */
  notify(notification: JSONRPCNotification): void {
    const text = JSON.stringify(notification);
    this.#said += 1;
    // Its last time is what counts.
    this.#news.delete(text);
    this.#news.set(text, this.#said);
    if (!this.#stream?.isOpen) return;
    this.#stream.send('message', text, this.#said);
    this.#heard = this.#said;
  }

  /** How far a request is, as long as it is not answered. It is told now or never: the next is worth more. */
  sendProgress(number: number, params: Progress & { readonly progressToken: ProgressToken }): void {
    const pending = this.#pending.get(number);
    if (!pending) return;
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params });
    if (!pending.tell(text)) this.#stream?.sendIfRoom('message', text);
  }

  async start(): Promise<void> {
    // It begins with its first message.
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ('method' in message) {
      // This server asks its clients nothing.
      if (!('id' in message)) this.notify(message);
      return;
    }
    const number = Number(message.id);
    const pending = this.#pending.get(number);
    if (!pending) return;
    this.#pending.delete(number);
    if (pending.method === 'initialize' && 'result' in message) this.version = String(message.result['protocolVersion']);
    pending.take({ ...message, id: pending.id });
  }

  /** Whoever still waits is told that it is over. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { id, take } of pending) take(rpcErrorResponse(id, gone()));
    this.#stream?.end();
    this.onclose?.();
    this.#over();
  }

  #note(method: string, params: Record<string, unknown> | undefined): void {
    if (method === 'notifications/initialized') this.onmessage?.({ jsonrpc: '2.0', method });
    if (method !== 'notifications/cancelled') return;
    for (const [number, { id, take }] of this.#pending) {
      if (id !== params?.['requestId']) continue;
      this.#pending.delete(number);
      this.onmessage?.({ jsonrpc: '2.0', method, params: { requestId: number } });
      take(undefined);
    }
  }
}

const gone = (): Failure => new Failure('session_unavailable', 'This session has ended; connect again.');

const tooMany = (): Failure =>
  new Failure(
    'rate_limited',
    `More than ${MOST_PENDING} requests of this session wait for their answers; wait for some of them.`,
  );
