import type { HostAllowlist } from './hosts.ts';

/** An HTTPS GET request to an external server. Packs cannot use other methods. */
export interface EgressRequest {
  readonly url: string;
  /** Hosts that the request is allowed to contact, including by redirect. */
  readonly hosts: HostAllowlist;
  /** Headers that are sent to the first host only. A redirect to another host drops them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum bytes of the response body. Defaults to `EGRESS.bytes`, which is also the highest possible value. */
  readonly maxBytes?: number;
  /** If true, a body longer than `maxBytes` is truncated. Otherwise such a response is refused. */
  readonly truncate?: boolean;
  readonly signal: AbortSignal;
}

export interface EgressResponse {
  /** The final address after redirects, without a fragment. */
  readonly url: string;
  readonly status: number;
  /** The response headers, with names in lower case. Repeated headers are joined with commas. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly truncated: boolean;
  /** True if this response, or a redirect before it, forbids caching. */
  readonly uncacheable: boolean;
}

/**
 * The only way in which packs (R-PACK-14) and the update check can reach the network. Connects only to public addresses, and
 * checks each address before use. Throws a `Failure` that names the host but never contains a header.
 */
export interface Egress {
  get(request: EgressRequest): Promise<EgressResponse>;
}

/** Whether the response headers forbid caching (R-PACK-04). */
export function forbidsCaching(headers: ReadonlyMap<string, string>): boolean {
  const control = headers.get('cache-control') ?? '';
  return headers.has('set-cookie') || /(^|[\s,])(no-store|no-cache|private|max-age=0+(?!\d))/i.test(control);
}
