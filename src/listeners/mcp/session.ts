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

/** Unanswered requests per session. */
const MAX_PENDING = 256;

/** Receives the response, or undefined if the client cancelled the request. */
type OnResponse = (response: RpcResponse | undefined) => void;

/** Sends a notification on the connection of a pending request. Returns false if that connection cannot carry any. */
export type SendBeforeResponse = (text: string) => boolean;

const cannotSend: SendBeforeResponse = () => false;

interface PendingRequest {
  /** The client's own id of the request. */
  readonly id: RequestId;
  readonly method: string;
  readonly onResponse: OnResponse;
  readonly sendBefore: SendBeforeResponse;
}

/** Where responses go: to the HTTP request, or to the session's event stream. A session cannot use both. */
export type TransportKind = 'http' | 'sse';

export interface SessionOwner {
  readonly caller: Caller;
  readonly transportKind: TransportKind;
  /** Digest of the token. Two tokens may have the same id, but not the same digest. */
  readonly token: string;
}

/**
 * One client's session, and the SDK's transport to that client. Requests are renumbered before the SDK sees them, so that two with
 * the same id from the client are never confused.
 */
export class Session implements Transport {
  readonly id = randomBytes(24).toString('base64url');
  readonly owner: SessionOwner;
  /** URIs of the resources that the client subscribed to. */
  readonly subscriptions = new Set<string>();
  /** Time of the last request on the steady clock, in milliseconds. */
  usedAt: number;
  /** The negotiated protocol version. */
  version: string | undefined;
  onmessage?: Transport['onmessage'];
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #pending = new Map<number, PendingRequest>();
  /** Notifications, each text once, with the event number of its latest occurrence. */
  readonly #notifications = new Map<string, number>();
  /** Number of the latest notification, and of the latest one written to a stream. */
  #lastEvent = 0;
  #lastSentEvent = 0;
  #requestCount = 0;
  #stream: EventStream | undefined;
  readonly #onEnd: () => void;
  #ended = false;

  constructor(owner: SessionOwner, now: number, onEnd: () => void) {
    this.owner = owner;
    this.usedAt = now;
    this.#onEnd = onEnd;
  }

  get busy(): boolean {
    return this.#pending.size > 0 || this.#stream?.isOpen === true;
  }

  /** Passes messages to the SDK and resolves with all responses, in the order in which they are ready. */
  async request(messages: readonly RpcMessage[], sendBefore = cannotSend): Promise<RpcResponse[]> {
    const responses: RpcResponse[] = [];
    const pending = messages.map(async (message) => {
      if (message.kind === 'invalid') responses.push(message.response);
      if (message.kind !== 'request') return this.receive(message, () => undefined);
      await new Promise<void>((resolve) => {
        const onResponse: OnResponse = (response) => {
          if (response) responses.push(response);
          resolve();
        };
        this.receive(message, onResponse, sendBefore);
      });
    });
    await Promise.all(pending);
    return responses;
  }

  receive(message: RpcMessage, onResponse: OnResponse, sendBefore = cannotSend): void {
    if (message.kind === 'notification') this.#receiveNotification(message.method, message.params);
    if (message.kind !== 'request') return;
    const { id, method, params } = message;
    if (this.#ended) return onResponse(rpcErrorResponse(id, sessionEnded()));
    if (this.#pending.size >= MAX_PENDING) return onResponse(rpcErrorResponse(id, tooManyRequests()));
    this.#requestCount += 1;
    this.#pending.set(this.#requestCount, { id, method, onResponse, sendBefore });
    const request: JSONRPCRequest = { jsonrpc: '2.0', id: this.#requestCount, method, ...(params && { params }) };
    this.onmessage?.(request);
  }

  /** Replaces the stream for notifications. First sends those that the client missed: all after `lastSent`. */
  attachStream(stream: EventStream, lastSent = this.#lastSentEvent): void {
    this.#stream?.end();
    this.#stream = stream;
    for (const [text, number] of this.#notifications) {
      if (number > lastSent) stream.send(text, { event: 'message', id: number });
    }
    this.#lastSentEvent = this.#lastEvent;
  }

  detachStream(stream: EventStream): void {
    if (this.#stream === stream) this.#stream = undefined;
  }

  sendOnStream(response: RpcResponse): void {
    this.#stream?.send(JSON.stringify(response), { event: 'message' });
  }

  /** Sends a notification now, or when the client opens a stream. */
  notify(notification: JSONRPCNotification): void {
    const text = JSON.stringify(notification);
    this.#lastEvent += 1;
    // Deleted first, so that the map stays in the order of the numbers.
    this.#notifications.delete(text);
    this.#notifications.set(text, this.#lastEvent);
    if (!this.#stream?.isOpen) return;
    this.#stream.send(text, { event: 'message', id: this.#lastEvent });
    this.#lastSentEvent = this.#lastEvent;
  }

  /** Sends the progress of a pending request. It is dropped if it cannot be sent now, because newer progress replaces it. */
  sendProgress(number: number, params: Progress & { readonly progressToken: ProgressToken }): void {
    const request = this.#pending.get(number);
    if (!request) return;
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params });
    if (!request.sendBefore(text)) this.#stream?.sendIfRoom(text, { event: 'message' });
  }

  async start(): Promise<void> {
    // Nothing to do: the HTTP server is already listening.
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ('method' in message) {
      // Requests are not forwarded: this server sends none to its clients.
      if (!('id' in message)) this.notify(message);
      return;
    }
    const number = Number(message.id);
    const request = this.#pending.get(number);
    if (!request) return;
    this.#pending.delete(number);
    if (request.method === 'initialize' && 'result' in message) this.version = String(message.result['protocolVersion']);
    request.onResponse({ ...message, id: request.id });
  }

  /** Ends the session. Pending requests fail. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { id, onResponse } of pending) onResponse(rpcErrorResponse(id, sessionEnded()));
    this.#stream?.end();
    this.onclose?.();
    this.#onEnd();
  }

  #receiveNotification(method: string, params: Record<string, unknown> | undefined): void {
    if (method === 'notifications/initialized') this.onmessage?.({ jsonrpc: '2.0', method });
    if (method !== 'notifications/cancelled') return;
    for (const [number, { id, onResponse }] of this.#pending) {
      if (id !== params?.['requestId']) continue;
      this.#pending.delete(number);
      this.onmessage?.({ jsonrpc: '2.0', method, params: { requestId: number } });
      onResponse(undefined);
    }
  }
}

const sessionEnded = (): Failure => new Failure('session_unavailable', 'This session has ended; connect again.');

const tooManyRequests = (): Failure =>
  new Failure('rate_limited', `This session already has ${MAX_PENDING} unanswered requests; wait for some responses.`);
