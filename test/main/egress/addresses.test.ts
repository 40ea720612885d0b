import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../src/main/egress/addresses.ts';

describe('a public address (R-PACK-14)', () => {
  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.215.14',
    '140.82.121.6',
    '172.15.255.255',
    '172.32.0.1',
    '100.128.0.1',
    '223.255.255.254',
  ])('is %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    '2606:4700:4700::1111',
    '2a00:1450:4001:80e::200e',
    '2606:2800:21f:cb07:6820:80da:af6b:8b2c',
    '2001:4860:4860::8888',
  ])('is %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.254',
    '168.63.129.16',
    '169.254.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.170',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '192.168.255.255',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.251',
    '239.255.255.250',
    '240.0.0.1',
    '255.255.255.255',
  ])('is not %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '::ffff:0:10.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::10.0.0.1',
    '64:ff9b:1::a00:1',
    '100::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    'ff0e::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2002:a00:1::1',
    '3fff::1',
    '5f00::1',
    '2606:4700::1%1',
  ])('is not %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([
    '',
    'localhost',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '1.1.1.1:443',
    '[::1]',
    ' 1.1.1.1',
    '1.1.1.1\n',
  ])('is not "%s", which is not in the form that the resolver returns', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});
