import { BlockList, isIPv4, isIPv6 } from 'node:net';

/**
 * What the registries of special addresses reserve (IANA, RFC 6890 and later): this machine and its networks, shared, example
 * and benchmark ranges, relays, multicast, and what is reserved. 168.63.129.16 is where a large cloud answers its own machines.
 */
const CLOSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];

/**
 * Of IPv6 only global unicast is open at all, so mapped and compatible addresses, NAT64, link-local, unique local and multicast
 * ones are closed with the rest. Closed within it: Teredo and the other protocol ranges, examples, and 6to4, in which an
 * address of any kind can hide.
 */
const OPEN_V6 = '2000::/3';
const CLOSED_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

const listOf = (subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList => {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = '', prefix] = subnet.split('/');
    list.addSubnet(net, Number(prefix), family);
  }
  return list;
};

const closedV4 = listOf(CLOSED_V4, 'ipv4');
const openV6 = listOf([OPEN_V6], 'ipv6');
const closedV6 = listOf(CLOSED_V6, 'ipv6');

/** Whether it is an address on the internet, and nothing but that. A zone, as in fe80::1%eth0, is of this machine. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closedV4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  return openV6.check(address, 'ipv6') && !closedV6.check(address, 'ipv6');
}
