import { Failure } from '../../contract/failure.ts';
import { Release } from '../../contract/updates.ts';
import type { UpdateSource } from '../../core/operations/memory.ts';
import type { Egress } from '../../core/packs/egress.ts';
import { parseHostAllowlist } from '../../core/packs/hosts.ts';

/** Maximum bytes of a response. A valid response contains only a version and an address, and is far smaller. */
const MAX_BYTES = 4096;

/**
 * Creates the source of update checks, at an address that is set at build time. The checks can reach only the host of that
 * address. Returns undefined if the address is not a valid HTTPS address.
 */
export function updatesAt(address: string, egress: Egress): UpdateSource | undefined {
  const url = URL.parse(address);
  const hosts =
    url?.protocol === 'https:' ? parseHostAllowlist([url.host], 'report this to the provider of Helmdeck Memory') : undefined;
  if (!url || !hosts) return undefined;
  const { host } = url;
  return {
    host,
    async newest(signal) {
      const { status, body } = await egress.get({
        url: address,
        hosts,
        headers: { Accept: 'application/json' },
        maxBytes: MAX_BYTES,
        signal,
      });
      if (status !== 200) {
        throw new Failure('handler_failed', `${host} responded with status ${status}. Try again later.`);
      }
      const read = Release().safeParse(jsonIn(body));
      if (read.success) return read.data;
      throw new Failure(
        'handler_failed',
        `${host} sent a response that Helmdeck Memory does not understand. Report this to the provider of Helmdeck Memory.`,
        { cause: read.error },
      );
    },
  };
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
