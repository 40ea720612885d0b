import type * as z from 'zod';
import { Failure } from '../../../contract/failure.ts';
import { SECOND_MS } from '../../../contract/units.ts';
import type { Clock } from '../../time/clock.ts';
import { formatTime } from '../../time/format-time.ts';
import type { Egress, EgressResponse } from '../egress.ts';
import type { HostAllowlist } from '../hosts.ts';
import type { ExecutionContext } from '../pack.ts';

const HOST = 'api.github.com';
export const GITHUB_API = `https://${HOST}`;

/** The hosts that the GitHub packs can contact. Settings cannot add hosts to this list. */
const HOSTS: HostAllowlist = {
  allows: (name, port) => name === HOST && port === 443,
  remedy: 'only api.github.com is allowed',
};

/** Seconds to wait if a response names no time, as GitHub documents. */
const DEFAULT_WAIT = 60;
/**
 * Maximum seconds to wait. GitHub's longest rate limit period is an hour, so a longer time in a header is reduced to this value.
 */
const MAX_WAIT_SECONDS = 3600;

export interface GitHubResponse<Data> {
  readonly data: Data;
  readonly nextUrl: string | undefined;
  /** True if the rate limit is reached, so the next page must not be requested yet. */
  readonly limitReached: boolean;
}

/** Sends requests to GitHub. Respects GitHub's rate limits and reports rejected credentials (R-PACK-17). */
export class GitHubClient {
  readonly #egress: Egress;
  readonly #clock: Clock;
  /** For each credential id, the time when the credential can be used again, in milliseconds of the steady clock. */
  readonly #waits = new Map<string, number>();

  constructor({ egress, clock }: { egress: Egress; clock: Clock }) {
    this.#egress = egress;
    this.#clock = clock;
  }

  async get<Shape extends z.ZodType>(
    context: ExecutionContext,
    url: string,
    shape: Shape,
  ): Promise<GitHubResponse<z.output<Shape>>> {
    const { credential, signal, doNotCache } = context;
    this.#refuseWhileWaiting(context);
    const reply = await this.#egress.get({
      url,
      hosts: HOSTS,
      headers: {
        Accept: 'application/vnd.github+json',
        'X-GitHub-Api-Version': '2022-11-28',
        ...(credential && { Authorization: `Bearer ${credential.secret}` }),
      },
      signal,
    });
    if (reply.uncacheable) doNotCache();
    const wait = waitOf(reply);
    if (wait !== undefined) this.#waits.set(idOf(credential), this.#clock.steady() + wait * SECOND_MS);
    if (reply.status !== 200) throw await this.#failureOf(context, reply.status, wait);
    const { success, data } = shape.safeParse(jsonOf(reply));
    if (success) return { data, nextUrl: nextOf(reply), limitReached: wait !== undefined };
    throw new Failure('handler_failed', 'GitHub sent a response in an unknown format. Look for a newer version of this program.');
  }

  #refuseWhileWaiting({ credential }: ExecutionContext): void {
    const left = (this.#waits.get(idOf(credential)) ?? 0) - this.#clock.steady();
    if (left > 0) throw this.#exhausted(credential !== undefined, left);
    this.#waits.delete(idOf(credential));
  }

  async #failureOf({ credential }: ExecutionContext, status: number, wait: number | undefined): Promise<Failure> {
    if (wait !== undefined && RATE_LIMIT_STATUSES.has(status)) return this.#exhausted(credential !== undefined, wait * SECOND_MS);
    if (status === 401) {
      await credential?.reportRejected?.();
      return failed(
        credential
          ? 'GitHub rejected the credential: it is wrong, expired or revoked. The owner can set a new one with: helmdeck-memory credential set github.'
          : 'GitHub requires a credential for this request. The owner can set one with: helmdeck-memory credential set github.',
      );
    }
    const who = credential
      ? 'the credential has no access to the repository'
      : 'the repository is private and no credential for GitHub is set';
    if (status === 404) return failed(`GitHub has no such repository or issue, or ${who}; check the name and the number.`);
    if (status === 410)
      return failed("The issue no longer exists on GitHub: it was deleted, or the repository's issues are disabled.");
    if (status === 403 || status === 451)
      return failed(`GitHub denied access: ${who}, or the repository is blocked. Ask the owner of the repository.`);
    if (status === 422) return failed('GitHub rejected the request. Check the labels and the time.');
    return failed(`GitHub responded with status ${status}; try again later.`);
  }

  #exhausted(withCredential: boolean, ms: number): Failure {
    const whose = withCredential ? "for the owner's credential" : 'for requests without a credential';
    const remedy = withCredential ? '' : ', or ask the owner to set one with: helmdeck-memory credential set github';
    return new Failure(
      'handler_failed',
      `GitHub's rate limit ${whose} is reached; try again after ${formatTime(this.#clock.now() + ms)}${remedy}.`,
      { retryAfter: Math.ceil(ms / SECOND_MS) },
    );
  }
}

const failed = (message: string): Failure => new Failure('handler_failed', message);

const idOf = (credential: ExecutionContext['credential']): string => credential?.id ?? '';

const RATE_LIMIT_STATUSES: ReadonlySet<number> = new Set([403, 429]);

/**
 * Returns the seconds to wait before the next request, or undefined if no wait is needed. A wait is also needed after a
 * successful response that uses up the limit.
 */
function waitOf({ status, headers }: EgressResponse): number | undefined {
  const after = RATE_LIMIT_STATUSES.has(status) ? seconds(headers.get('retry-after')) : undefined;
  if (after !== undefined) return bounded(after);
  if (headers.get('x-ratelimit-remaining') === '0') {
    const reset = seconds(headers.get('x-ratelimit-reset'));
    // Compare with the time in GitHub's response, because the local clock may be wrong.
    const sent = Date.parse(headers.get('date') ?? '') / SECOND_MS;
    return bounded(reset === undefined || Number.isNaN(sent) ? DEFAULT_WAIT : reset - sent + 1);
  }
  return status === 429 ? DEFAULT_WAIT : undefined;
}

const seconds = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;

const bounded = (wait: number): number => Math.min(Math.max(wait, 1), MAX_WAIT_SECONDS);

/** Returns the address of the next page from the `Link` header (RFC 8288), in the form that GitHub sends. */
function nextOf({ headers }: EgressResponse): string | undefined {
  const next = /<([^<>\s]{1,2048})>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (next === undefined || next.startsWith(`${GITHUB_API}/`)) return next;
  throw failed("GitHub's next page is on another host, which is not allowed; lower the limit.");
}

function jsonOf({ body }: EgressResponse): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
