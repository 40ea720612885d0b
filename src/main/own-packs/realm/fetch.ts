import type { Signal } from './abort.ts';
import { requestFromProgram } from './requests.ts';

export interface FetchResult {
  readonly url: string;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
}

interface Options {
  readonly method?: unknown;
  readonly headers?: Iterable<readonly [unknown, unknown]> | Record<string, unknown>;
  readonly body?: unknown;
  readonly signal?: Signal;
}

/**
 * Requests a URL with GET from a host that the pack declares. The program sends the request, because this process has no sockets.
 * Supports only those parts of the web's `fetch` that are needed to get text.
 */
export async function fetch(url: unknown, { method = 'GET', headers = {}, body, signal }: Options = {}): Promise<object> {
  if (String(method).toUpperCase() !== 'GET' || (body !== undefined && body !== null)) {
    throw new TypeError('`fetch` supports only GET requests without a body');
  }
  signal?.throwIfAborted();
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  const sent = Object.fromEntries(pairs.map(([name, value]) => [String(name), String(value)]));
  const response = requestFromProgram('fetch', String(url), sent) as Promise<FetchResult>;
  return responseOf(await (signal ? beforeAborted(signal, response) : response));
}

async function beforeAborted<Value>(signal: Signal, value: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([value, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function responseOf({ url, status, headers, text }: FetchResult): object {
  const named = new Map(headers);
  return {
    url,
    status,
    ok: status >= 200 && status <= 299,
    headers: {
      get: (name: unknown): string | null => named.get(String(name).toLowerCase()) ?? null,
      has: (name: unknown): boolean => named.has(String(name).toLowerCase()),
      entries: () => named.entries(),
      [Symbol.iterator]: () => named.entries(),
    },
    // Return promises, as the web's API does.
    text: () => Promise.resolve(text),
    json: () => Promise.resolve(text).then((json) => JSON.parse(json) as unknown),
  };
}
