/** Who outside may be asked. */
export interface HostAllowlist {
  allows(name: string, port: number): boolean;
  /** What its owner can do about a host that is missing. */
  readonly remedy: string;
}

export const HTTPS_PORT = 443;

const LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
/** Two labels or more, and a last one that no number could be: names alone, never addresses. */
const NAME = new RegExp(`^(${LABEL}\\.)+(?!\\d+$|0x)${LABEL}$`);

export const isHostName = (name: string): boolean => name.length <= 253 && NAME.test(name);

/** `name`, or `*.name` for all below it, each with a port unless it is the usual one. Undefined where one is not so. */
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
  /** All names that end so, and not the name itself. */
  readonly below: boolean;
  readonly port: number;
}

function parse(text: string): Host | undefined {
  const [, wildcard, name = '', digits] = /^(\*\.)?([^:]*)(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const port = Number(digits ?? HTTPS_PORT);
  return isHostName(name) && port <= 65_535 ? { name, below: wildcard !== undefined, port } : undefined;
}
