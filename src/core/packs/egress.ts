import type { HostAllowlist } from './hosts.ts';

/** An HTTPS GET to an external server. Packs can send no other method. */
export interface EgressRequest {
  readonly url: string;
  /** Hosts that may be contacted, including by redirect. */
  readonly hosts: HostAllowlist;
  /** Sent to the first host only. A redirect to another host drops them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The largest body in bytes. Defaults to `EGRESS.bytes`, which is also the maximum. */
  readonly maxBytes?: number;
  /** Truncates a longer body. Without it, a longer body is refused. */
  readonly truncate?: boolean;
  readonly signal: AbortSignal;
}

export interface EgressResponse {
  /** The final address after redirects, without a fragment. */
  readonly url: string;
  readonly status: number;
  /** Names in lower case. Repeated headers are joined with commas. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly truncated: boolean;
  /** Whether this response or a redirect on the way forbids caching. */
  readonly uncacheable: boolean;
}

/**
 * The only way packs (R-PACK-14) and the update check reach the network. Connects only to public addresses, each checked before
 * use. Throws a `Failure` that names the host and never a header.
 */
export interface Egress {
  get(request: EgressRequest): Promise<EgressResponse>;
}

/** Whether the response headers forbid caching (R-PACK-04). */
export function forbidsCaching(headers: ReadonlyMap<string, string>): boolean {
  const control = headers.get('cache-control') ?? '';
  return headers.has('set-cookie') || /(^|[\s,])(no-store|no-cache|private|max-age=0+(?!\d))/i.test(control);
}
