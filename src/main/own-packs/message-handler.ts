import * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { lazy } from '../../contract/schema.ts';
import type { Egress } from '../../core/packs/egress.ts';
import type { HostAllowlist } from '../../core/packs/hosts.ts';
import type { ExecutionContext, PackMemory } from '../../core/packs/pack.ts';
import type { ProgramMessage, PackMessage } from './messages.ts';
import type { FetchResult } from './realm/fetch.ts';

/**
 * Maximum concurrent requests of one pack. Twice the limit in the pack's own runtime (realm/requests.ts), so only a manipulated
 * runtime exceeds this limit.
 */
const MAX_CONCURRENT = 32;

const StoreOptions = lazy(() =>
  z.strictObject({
    ttl: z.number().exactOptional(),
    category: z.string().exactOptional(),
    tags: z.array(z.string().trim().min(1).max(64)).max(32).exactOptional(),
  }),
);

/** The memory functions that a pack is allowed to call. */
const memoryOperations: Record<string, (memory: PackMemory, parameters: unknown[]) => Promise<unknown>> = {
  async store(memory, parameters) {
    const [key, value, options] = z.tuple([z.string(), z.unknown(), StoreOptions()]).parse(parameters);
    await memory.store(key, value, options);
  },
  recall: (memory, parameters) => memory.recall(...z.tuple([z.string()]).parse(parameters)),
  list: (memory, parameters) => memory.list(...z.tuple([z.string()]).parse(parameters)),
  delete: (memory, parameters) => memory.delete(...z.tuple([z.string()]).parse(parameters)),
  context: (memory) => memory.context(),
};

export interface NetworkAccess {
  readonly egress: Egress;
  /** The hosts that the pack declares. Requests to other hosts are refused. */
  readonly hosts: HostAllowlist;
}

/** Log limits of one run, so that a pack cannot flood the program's log. */
const LOG = { lines: 500, lineCharacters: 2000, bytes: 256 * 1024 };

/**
 * Creates a handler for a running pack's messages. It replies to memory and fetch requests, and forwards progress and log lines
 * to the caller.
 */
export function createMessageHandler(context: ExecutionContext, network: NetworkAccess, refusals: Map<number, Failure>) {
  const { memory, progress, doNotCache } = context;
  const log = limitLog(context.log);
  let pending = 0;
  return (message: PackMessage, reply: (answer: ProgramMessage) => void): void => {
    if (message.is === 'progress') progress(message.done, message.of, message.saying);
    if (message.is === 'log') log(message.text);
    if (message.is === 'doNotCache') doNotCache();
    if (message.is !== 'request') return;
    if ((pending += 1) > MAX_CONCURRENT)
      throw new Error('The pack sent more concurrent requests than its runtime allows; tell its author.');
    const { id, operation, parameters } = message;
    void (operation === 'fetch' ? fetchFor(network, context, parameters) : callMemory(memory, operation, parameters))
      .then(
        (value) => reply({ is: 'answer', id, value }),
        (error: unknown) => {
          if (!(error instanceof z.ZodError)) refusals.set(id, asFailure(error));
          reply({ is: 'refusal', id, message: error instanceof z.ZodError ? usageOf(operation) : asFailure(error).message });
        },
      )
      .finally(() => (pending -= 1));
  };
}

function limitLog(log: (text: string) => void): (text: string) => void {
  let lines = 0;
  let bytes = 0;
  return (text) => {
    if (lines > LOG.lines) return;
    const line = text.length > LOG.lineCharacters ? `${text.slice(0, LOG.lineCharacters)}…` : text;
    lines += 1;
    bytes += Buffer.byteLength(line);
    if (bytes > LOG.bytes) lines = LOG.lines + 1;
    log(
      lines <= LOG.lines
        ? line
        : `Further log lines of this run are dropped. The limit is ${LOG.lines} lines and ${LOG.bytes / 1024} KiB per run.`,
    );
  };
}

async function callMemory(memory: PackMemory | undefined, operation: string, parameters: unknown[]): Promise<unknown> {
  if (!memory || !Object.hasOwn(memoryOperations, operation)) throw new z.ZodError([]);
  return await memoryOperations[operation]?.(memory, parameters);
}

const FetchRequest = lazy(() => z.tuple([z.string().max(2048), z.record(z.string().max(100), z.string().max(2048))]));

/** Headers that affect the destination or the framing of a request. A pack must not set them. */
const RESERVED =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|accept-encoding|user-agent)$/i;

/** Sends a GET request for a pack, with the same limits as every pack request (R-PACK-14). */
async function fetchFor(
  { egress, hosts }: NetworkAccess,
  { signal, doNotCache }: ExecutionContext,
  parameters: unknown[],
): Promise<FetchResult> {
  const [url, headers] = FetchRequest().parse(parameters);
  const names = Object.keys(headers);
  if (
    !names.every((name) => /^[\w-]+$/.test(name) && !RESERVED.test(name)) ||
    Object.values(headers).some(isInvalidHeaderValue)
  ) {
    throw new Failure(
      'invalid_input',
      '`fetch` was called with a header that is not allowed; remove headers that Helmdeck Memory sets itself, such as Host.',
    );
  }
  const reply = await egress.get({ url, hosts, headers, signal });
  // A response marked as private must not be cached (R-PACK-04).
  if (reply.uncacheable) doNotCache();
  return {
    url: reply.url,
    status: reply.status,
    headers: [...reply.headers].filter(([header]) => header !== 'set-cookie'),
    text: reply.body.toString('utf8'),
  };
}

const isInvalidHeaderValue = (value: string): boolean => !/^[\t\x20-\x7e]*$/.test(value);

const usageOf = (operation: string): string =>
  operation === 'fetch'
    ? '`fetch` needs an address and optional headers; see docs/packs.md'
    : operation === 'store'
      ? '`store` needs a key and a value, and optionally `ttl`, `category` and `tags`; see docs/packs.md'
      : `\`${operation}\` needs a key or a key prefix; see docs/packs.md`;
