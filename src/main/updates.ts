import { Failure } from '../contract/failure.ts';
import { Release } from '../contract/updates.ts';
import type { UpdateSource } from '../core/operations/memory.ts';
import type { Egress } from '../core/packs/egress.ts';
import { parseHostAllowlist } from '../core/packs/hosts.ts';

/** A version and an address; what is longer is something else. */
const MOST_BYTES = 4096;

/** By the one way out, from the one host that the build names. Undefined where it names none that can be asked. */
export function updatesAt(address: string, egress: Egress): UpdateSource | undefined {
  const url = URL.parse(address);
  const hosts = url?.protocol === 'https:' ? parseHostAllowlist([url.host], 'ask where you got this program') : undefined;
  if (!url || !hosts) return undefined;
  const { host } = url;
  return {
    host,
    async newest(signal) {
      const { status, body } = await egress.get({
        url: address,
        hosts,
        headers: { Accept: 'application/json' },
        maxBytes: MOST_BYTES,
        signal,
      });
      if (status !== 200) {
        throw new Failure('handler_failed', `${host} answered with ${status} instead of a version; try again later.`);
      }
      const read = Release().safeParse(jsonIn(body));
      if (read.success) return read.data;
      throw new Failure(
        'handler_failed',
        `${host} answered in a form that this program does not know; ask where you got this program.`,
        { cause: read.error },
      );
    },
  };
}

/** Undefined, which is no release, where it is none. */
function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
