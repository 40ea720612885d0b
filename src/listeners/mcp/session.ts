import { randomBytes } from 'node:crypto';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type {
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
  Progress,
  ProgressToken,
  RequestId,
  Result,
} from '@modelcontextprotocol/sdk/types.js';
import { Failure } from '../../contract/failure.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { EventStream } from '../event-stream.ts';
import type { RpcMessage } from './message.ts';
import { rpcErrorResponse, type RpcResponse } from './rpc.ts';
import { stringifyMessage } from './tool-result.ts';

/** Maximum number of unanswered requests per session. */
const MAX_PENDING = 256;

/** Called with the response, or with undefined if the client cancelled the request. */
type OnResponse = (response: RpcResponse | undefined) => void;

/**
 * Sends a notification on the connection of a pending request, before the response. Returns false if that connection cannot send
 * notifications.
 */
export type SendBeforeResponse = (text: string) => boolean;

const cannotSend: SendBeforeResponse = () => false;

export type Params = NonNullable<JSONRPCRequest['params']>;

export interface RequestContext {
  readonly requestId: RequestId;
  /** Aborted when the client cancels the request or the session ends. */
  readonly signal: AbortSignal;
}

/** A method of this program. Methods of the protocol itself, such as `initialize`, are handled by the SDK. */
type RunMethod = (params: Params, context: RequestContext) => Promise<object>;

interface PendingRequest {
  /** The id that the client gave the request. */
  readonly id: RequestId;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly onResponse: OnResponse;
  readonly sendBefore: SendBeforeResponse;
  /** Undefined for a method that the SDK handles. */
  readonly controller: AbortController | undefined;
}

/** How a session sends responses: in the HTTP response to each request (`http`), or on the session's event stream (`sse`). */
export type TransportKind = 'http' | 'sse';

export interface SessionOwner {
  readonly caller: Caller;
  readonly transportKind: TransportKind;
  /** Digest of the token. An id is not enough, because two tokens can have the same id. */
  readonly digest: string;
}

/**
 * An MCP session with one client. The SDK uses the session as its transport. Methods of this program run without the SDK, which
 * would validate each message again. Requests get new ids, because the client can give two requests the same id.
 */
export class Session implements Transport {
  readonly id = randomBytes(24).toString('base64url');
  owner: SessionOwner;
  readonly subscriptions = new Set<string>();
  /** Time of the last request, in milliseconds on the steady clock. */
  usedAt: number;
  /** The negotiated protocol version, once the session is initialized. */
  version: string | undefined;
  onmessage?: Transport['onmessage'];
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** Returns a method of this program. */
  findMethod?: (method: string) => RunMethod | undefined;
  /** Completes the result of `initialize`, which the SDK made. */
  completeInitialize?: (result: Result, params: PendingRequest['params']) => Promise<Result>;
  readonly #pending = new Map<number, PendingRequest>();
  /** The notifications so far. Maps each distinct text to the event number of its latest occurrence. */
  readonly #notifications = new Map<string, number>();
  #lastEventNumber = 0;
  #lastSentEventNumber = 0;
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

  /** Passes messages to the SDK. Resolves with all their responses, in the order in which they became ready. */
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
    const number = this.#requestCount;
    const run = this.findMethod?.(method);
    const controller = run && new AbortController();
    this.#pending.set(number, { id, method, params, onResponse, sendBefore, controller });
    if (run && controller) return void this.#run(run, params ?? {}, { requestId: number, signal: controller.signal });
    const request: JSONRPCRequest = { jsonrpc: '2.0', id: number, method, ...(params && { params }) };
    this.onmessage?.(request);
  }

  async #run(run: RunMethod, params: Params, context: RequestContext): Promise<void> {
    const number = Number(context.requestId);
    try {
      const result = await run(params, context);
      this.#take(number)?.((id) => ({ jsonrpc: '2.0', id, result: { ...result } }));
    } catch (error) {
      this.#take(number)?.((id) => rpcErrorResponse(id, error));
    }
  }

  /** Removes a pending request. Returns a function that responds to it, or undefined if the client cancelled the request. */
  #take(number: number): ((responseTo: (id: RequestId) => RpcResponse) => void) | undefined {
    const request = this.#pending.get(number);
    this.#pending.delete(number);
    return request && ((responseTo) => request.onResponse(responseTo(request.id)));
  }

  /**
   * Replaces the stream for notifications. First sends all notifications with an event number above `lastSent`, which the client
   * missed.
   */
  attachStream(stream: EventStream, lastSent = this.#lastSentEventNumber): void {
    this.#stream?.end();
    this.#stream = stream;
    for (const [text, number] of this.#notifications) {
      if (number > lastSent) stream.send(text, { event: 'message', id: number });
    }
    this.#lastSentEventNumber = this.#lastEventNumber;
  }

  detachStream(stream: EventStream): void {
    if (this.#stream === stream) this.#stream = undefined;
  }

  sendOnStream(response: RpcResponse): void {
    this.#stream?.send(stringifyMessage(response), { event: 'message' });
  }

  /** Sends a notification now if a stream is open, otherwise when the client opens a stream. */
  notify(notification: JSONRPCNotification): void {
    const text = JSON.stringify(notification);
    this.#lastEventNumber += 1;
    // Delete the text before setting it, so that the map stays ordered by event number.
    this.#notifications.delete(text);
    this.#notifications.set(text, this.#lastEventNumber);
    if (!this.#stream?.isOpen) return;
    this.#stream.send(text, { event: 'message', id: this.#lastEventNumber });
    this.#lastSentEventNumber = this.#lastEventNumber;
  }

  /**
   * Sends a progress notification of a pending request. Drops a notification that cannot be sent now, because later ones replace
   * it.
   */
  sendProgress(number: number, params: Progress & { readonly progressToken: ProgressToken }): void {
    const request = this.#pending.get(number);
    if (!request) return;
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params });
    if (!request.sendBefore(text)) this.#stream?.sendOrDrop(text, { event: 'message' });
  }

  async start(): Promise<void> {
    // Nothing to do: the HTTP server is already listening.
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ('method' in message) {
      // A message with an id is a request. This server never sends requests to clients.
      if (!('id' in message)) this.notify(message);
      return;
    }
    const number = Number(message.id);
    const request = this.#pending.get(number);
    if (!request) return;
    this.#pending.delete(number);
    if (request.method !== 'initialize' || !('result' in message)) return request.onResponse({ ...message, id: request.id });
    this.version = String(message.result['protocolVersion']);
    const result = (await this.completeInitialize?.(message.result, request.params)) ?? message.result;
    request.onResponse({ ...message, result, id: request.id });
  }

  /** Ends the session. Its pending requests get an error response. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { id, onResponse, controller } of pending) {
      controller?.abort();
      onResponse(rpcErrorResponse(id, sessionEnded()));
    }
    this.#stream?.end();
    this.onclose?.();
    this.#onEnd();
  }

  #receiveNotification(method: string, params: Record<string, unknown> | undefined): void {
    if (method === 'notifications/initialized') this.onmessage?.({ jsonrpc: '2.0', method });
    if (method !== 'notifications/cancelled') return;
    for (const [number, { id, onResponse, controller }] of this.#pending) {
      if (id !== params?.['requestId']) continue;
      this.#pending.delete(number);
      if (controller) controller.abort();
      else this.onmessage?.({ jsonrpc: '2.0', method, params: { requestId: number } });
      onResponse(undefined);
    }
  }
}

const sessionEnded = (): Failure => new Failure('session_unavailable', 'This session has ended; connect again.');

const tooManyRequests = (): Failure =>
  new Failure('rate_limited', `This session already has ${MAX_PENDING} unanswered requests; wait for some responses.`);
