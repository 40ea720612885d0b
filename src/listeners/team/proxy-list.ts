import { BlockList, isIP } from 'node:net';

/** Shortest prefix of a network that can be trusted as a proxy. Shorter ones would trust a large part of the internet. */
const MIN_PREFIX = { 4: 16, 6: 64 } as const;

/** Creates a list of the addresses and networks of a proxy. Returns undefined if an item is not an address or network. */
export function createProxyList(items: readonly string[]): BlockList | undefined {
  const list = new BlockList();
  for (const item of items) {
    const [, address = '', prefix] = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/.exec(item) ?? [];
    const version = isIP(address);
    if (version !== 4 && version !== 6) return undefined;
    const longest = version === 4 ? 32 : 128;
    const length = Number(prefix ?? longest);
    if (length < MIN_PREFIX[version] || length > longest) return undefined;
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}
