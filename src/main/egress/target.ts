import { Failure } from '../../contract/failure.ts';
import { type HostAllowlist, HTTPS_PORT, isHostName } from '../../core/packs/hosts.ts';

/** Characters that the URL parser would silently remove or convert. URLs that contain them are refused. */
const UNSAFE = /[\s\p{Cc}\\]/u;

/** Parses the URL that a pack requests. Throws if the URL is not valid or not allowed. */
export function parseTarget(text: string, hosts: HostAllowlist): URL {
  const prefixProblem = /^https:\/\/[^/?#]/i.test(text) ? undefined : 'must begin with https:// and a host';
  const url = prefixProblem === undefined && !UNSAFE.test(text) ? URL.parse(text) : null;
  const problem =
    prefixProblem ??
    (url ? problemWith(url, hosts) : 'is not a valid address; use an address such as https://docs.example.com/page');
  if (url && problem === undefined) return withoutFragment(url);
  throw new Failure('invalid_input', `url ${problem}.`);
}

/**
 * Parses the target of a redirect with the same checks as the first URL. Otherwise a server could redirect to a host that only
 * this machine can reach.
 */
export function parseRedirect(location: string, from: URL, hosts: HostAllowlist): URL {
  const url = UNSAFE.test(location) ? null : URL.parse(location, from.href);
  const problem = url ? problemWith(url, hosts) : 'is not a valid address; request another page';
  if (url && problem === undefined) return withoutFragment(url);
  throw new Failure('handler_failed', `The address that ${from.hostname} redirects to ${problem}.`);
}

export const portOf = ({ port }: URL): number => Number(port || HTTPS_PORT);

function problemWith(url: URL, hosts: HostAllowlist): string | undefined {
  if (url.protocol !== 'https:') return 'does not begin with https://; use an https address';
  if (url.username !== '' || url.password !== '') return 'contains a user name or a password; remove both';
  // Refuse IP addresses. `URL` has already converted forms such as 0x7f.1 to 127.0.0.1, which is not a host name.
  if (!isHostName(url.hostname)) return 'must have a full host name, such as docs.example.com, not an IP address';
  if (hosts.allows(url.hostname, portOf(url))) return undefined;
  return `is at ${url.host}, which is not an allowed host; ${hosts.remedy}`;
}

function withoutFragment(url: URL): URL {
  url.hash = '';
  return url;
}
