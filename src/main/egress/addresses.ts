import { BlockList, isIPv4, isIPv6 } from 'node:net';

/**
 * IPv4 ranges that packs must not contact: all special-purpose ranges (IANA, RFC 6890 and later). These are local, private,
 * shared, example and benchmark networks, relays, multicast and reserved ranges. Also 168.63.129.16, at which Azure's virtual
 * machines reach their host.
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
 * Packs can contact only global unicast IPv6 addresses. This excludes mapped and compatible addresses, NAT64, link-local, unique
 * local and multicast addresses. `CLOSED_V6` also excludes Teredo and other protocol ranges, examples, and 6to4, which can embed
 * any IPv4 address.
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

/**
 * True if the address is a public internet address. False for an address with a zone, such as fe80::1%eth0, because a zone names
 * a local network interface.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closedV4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  return openV6.check(address, 'ipv6') && !closedV6.check(address, 'ipv6');
}
