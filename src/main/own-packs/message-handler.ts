import * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { lazy } from '../../contract/schema.ts';
import type { Egress } from '../../core/packs/egress.ts';
import type { HostAllowlist } from '../../core/packs/hosts.ts';
import type { ExecutionContext, PackMemory } from '../../core/packs/pack.ts';
import type { ProgramMessage, PackMessage } from './messages.ts';
import type { FetchResult } from './realm/fetch.ts';

/** Twice the limit in the pack's own runtime (realm/ask.ts). */
const AT_ONCE = 32;

const StoreOptions = lazy(() =>
  z.strictObject({
    ttl: z.number().exactOptional(),
    category: z.string().exactOptional(),
    tags: z.array(z.string().trim().min(1).max(64)).max(32).exactOptional(),
  }),
);

/** The memory functions a pack may call. */
const questions: Record<string, (memory: PackMemory, given: unknown[]) => Promise<unknown>> = {
  async store(memory, given) {
    const [key, value, options] = z.tuple([z.string(), z.unknown(), StoreOptions()]).parse(given);
    await memory.store(key, value, options);
  },
  recall: (memory, given) => memory.recall(...z.tuple([z.string()]).parse(given)),
  list: (memory, given) => memory.list(...z.tuple([z.string()]).parse(given)),
  delete: (memory, given) => memory.delete(...z.tuple([z.string()]).parse(given)),
  context: (memory) => memory.context(),
};

/** How a pack reaches the network. */
export interface NetworkAccess {
  readonly egress: Egress;
  /** The hosts that the pack declares. */
  readonly hosts: HostAllowlist;
}

/** Handles a running pack's messages: memory and fetch requests are answered, progress and logs go to the caller. */
export function createMessageHandler(context: ExecutionContext, outside: NetworkAccess, refusals: Map<number, Failure>) {
  const { memory, progress, log, doNotCache } = context;
  let underWay = 0;
  return (said: PackMessage, answer: (heard: ProgramMessage) => void): void => {
    if (said.is === 'progress') progress(said.done, said.of, said.saying);
    if (said.is === 'log') log(said.text);
    if (said.is === 'doNotCache') doNotCache();
    if (said.is !== 'ask') return;
    if ((underWay += 1) > AT_ONCE) throw new Error('The pack sent more concurrent requests than its runtime allows.');
    const { id, what, with: given } = said;
    void (what === 'fetch' ? fetched(outside, context, given) : answered(memory, what, given))
      .then(
        (value) => answer({ is: 'answer', id, value }),
        (error: unknown) => {
          if (!(error instanceof z.ZodError)) refusals.set(id, asFailure(error));
          const message = error instanceof z.ZodError ? usageOf(what) : asFailure(error).message;
          answer({ is: 'refusal', id, message });
        },
      )
      .finally(() => (underWay -= 1));
  };
}

async function answered(memory: PackMemory | undefined, what: string, given: unknown[]): Promise<unknown> {
  if (!memory || !Object.hasOwn(questions, what)) throw new z.ZodError([]);
  return await questions[what]?.(memory, given);
}

const FetchRequest = lazy(() => z.tuple([z.string().max(2048), z.record(z.string().max(100), z.string().max(2048))]));

/** Headers that decide where a request goes or how it is framed. Only the program sets them. */
const RESERVED =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|accept-encoding|user-agent)$/i;

/** A GET for a pack, with the same limits as every pack request (R-PACK-14). */
async function fetched(
  { egress, hosts }: NetworkAccess,
  { signal, doNotCache }: ExecutionContext,
  given: unknown[],
): Promise<FetchResult> {
  const [url, headers] = FetchRequest().parse(given);
  const names = Object.keys(headers);
  if (!names.every((name) => /^[\w-]+$/.test(name) && !RESERVED.test(name)) || Object.values(headers).some(isNoHeaderValue)) {
    throw new Failure(
      'invalid_input',
      'fetch was called with a header that is not allowed; leave out headers that the program sets itself, such as Host.',
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

const isNoHeaderValue = (value: string): boolean => !/^[\t\x20-\x7e]*$/.test(value);

const usageOf = (what: string): string =>
  what === 'fetch'
    ? 'fetch takes an address and headers; see docs/packs.md'
    : what === 'store'
      ? 'store takes a key, a value, and optionally ttl, category and tags; see docs/packs.md'
      : `${what} takes a key or a key prefix; see docs/packs.md`;
