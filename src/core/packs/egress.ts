import type { HostAllowlist } from './hosts.ts';

/** What a pack asks a server outside. It is a GET over https: nothing else can be asked. */
export interface EgressRequest {
  readonly url: string;
  /** Who may be asked, by a redirect too. */
  readonly hosts: HostAllowlist;
  /** For the first host alone: a redirect to another one takes none of them along. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes of the body; no more than `EGRESS.bytes`, which it is unless told. */
  readonly maxBytes?: number;
  /** Whether a longer body is cut there. Else it is refused. */
  readonly truncate?: boolean;
  readonly signal: AbortSignal;
}

export interface EgressResponse {
  /** The address that answered in the end, without a fragment. */
  readonly url: string;
  readonly status: number;
  /** By names in lower case; what came several times is joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly truncated: boolean;
  /** Whether this answer, or a redirect on the way, said that it is for one alone or for this once. */
  readonly uncacheable: boolean;
}

/**
 * The one way out, for packs (R-PACK-14) and for whoever asks for a newer version. Only public addresses are connected to, and only those that were checked. What goes
 * wrong is a `Failure` that names the host and never a header.
 */
export interface Egress {
  get(errand: EgressRequest): Promise<EgressResponse>;
}

/** R-PACK-04: what is marked so belongs to nobody's cache. */
export function forbidsCaching(headers: ReadonlyMap<string, string>): boolean {
  const control = headers.get('cache-control') ?? '';
  return headers.has('set-cookie') || /(^|[\s,])(no-store|no-cache|private|max-age=0+(?!\d))/i.test(control);
}
