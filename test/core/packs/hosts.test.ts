import { expect, test } from 'vitest';
import { parseHostAllowlist } from '../../../src/core/packs/hosts.ts';

const among = (listed: string[], name: string, port = 443): boolean | undefined =>
  parseHostAllowlist(listed, 'ask')?.allows(name, port);

test('an entry allows one host, or all its subdomains (R-PACK-15)', () => {
  expect(among(['docs.example.com'], 'docs.example.com')).toBe(true);
  expect(among(['docs.example.com'], 'example.com')).toBe(false);
  expect(among(['docs.example.com'], 'evil-docs.example.com')).toBe(false);
  expect(among(['docs.example.com'], 'docs.example.com.evil.org')).toBe(false);
  expect(among(['*.example.com'], 'docs.example.com')).toBe(true);
  expect(among(['*.example.com'], 'a.docs.example.com')).toBe(true);
  expect(among(['*.example.com'], 'example.com')).toBe(false);
  expect(among(['*.example.com'], 'evilexample.com')).toBe(false);
  expect(among([], 'docs.example.com')).toBe(false);
});

test('another port is another host (R-PACK-15)', () => {
  expect(among(['docs.example.com'], 'docs.example.com', 8443)).toBe(false);
  expect(among(['docs.example.com:8443'], 'docs.example.com', 8443)).toBe(true);
  expect(among(['docs.example.com:8443'], 'docs.example.com', 443)).toBe(false);
  expect(among(['docs.example.com:8443', 'docs.example.com'], 'docs.example.com', 443)).toBe(true);
});

// prettier-ignore
test.each([
  '', '*', '*.', '*.com', '.com', 'com', 'localhost', 'docs.example.com.', 'Docs.example.com', 'https://docs.example.com',
  'docs.example.com/x', 'docs.example.com:', 'docs.example.com:0', 'docs.example.com:65536', 'docs.example.com:0443',
  'a.*.example.com', 'docs*.example.com', '**.example.com', '127.0.0.1', '*.0.0.1', '10.1', 'a.0x7f', '[::1]', '::1',
  '-a.example.com', 'a-.example.com', 'a_b.example.com', 'a..example.com', 'a.example.com ', 'bücher.example', 'a@b.com',
  `${'a'.repeat(64)}.example.com`, `${'a.'.repeat(130)}com`,
])('"%s" cannot be listed as a host', (host) => {
  expect(parseHostAllowlist(['docs.example.com', host], 'ask')).toBeUndefined();
});
