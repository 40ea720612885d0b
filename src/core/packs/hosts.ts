/** The external hosts that may be contacted. */
export interface HostAllowlist {
  allows(name: string, port: number): boolean;
  /** Tells the owner how to allow a missing host. */
  readonly remedy: string;
}

export const HTTPS_PORT = 443;

const LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
/** At least two labels, and a last label that is not a number: host names only, never IP addresses. */
const NAME = new RegExp(`^(${LABEL}\\.)+(?!\\d+$|0x)${LABEL}$`);

export const isHostName = (name: string): boolean => name.length <= 253 && NAME.test(name);

/** Accepts `name` or `*.name` (all subdomains), each with an optional port. Undefined if an entry is invalid. */
export function parseHostAllowlist(listed: readonly string[], remedy: string): HostAllowlist | undefined {
  const hosts = listed.map(parse);
  if (!hosts.every((host) => host !== undefined)) return undefined;
  return {
    remedy,
    allows: (name, port) =>
      hosts.some((host) => host.port === port && (host.below ? name.endsWith(`.${host.name}`) : name === host.name)),
  };
}

interface Host {
  readonly name: string;
  /** Matches all subdomains, but not the name itself. */
  readonly below: boolean;
  readonly port: number;
}

function parse(text: string): Host | undefined {
  const [, wildcard, name = '', digits] = /^(\*\.)?([^:]*)(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const port = Number(digits ?? HTTPS_PORT);
  return isHostName(name) && port <= 65_535 ? { name, below: wildcard !== undefined, port } : undefined;
}
