import { expect, test } from 'vitest';
import { isOlder } from '../../../src/main/sidecar/version.ts';

test.each([
  ['0.34.9', true],
  ['0.9.0', true],
  ['0.35.0-rc1', true],
  ['0.35.0-rc1-5-gabc1234', true],
  ['0.35.0rc1', true],
  ['0.35.0', false],
  ['0.35.0+rocm', false],
  ['0.35.0-5-gabc1234', false],
  ['0.35.1-rc1', false],
  ['0.100.0', false],
  ['1.0.0', false],
])('%s is older than 0.35.0: %s (R-EMB-08)', (version, older) => {
  expect(isOlder(version, '0.35.0')).toBe(older);
});
