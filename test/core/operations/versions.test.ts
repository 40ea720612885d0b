import { expect, test } from 'vitest';
import { isNewer } from '../../../src/core/operations/versions.ts';

/** In ascending order. The middle part is the example in the Semantic Versioning specification. */
const inOrder = [
  '0.1.0',
  '0.9.0',
  '0.10.0',
  '1.0.0-1',
  '1.0.0-99999999999999999998',
  '1.0.0-99999999999999999999',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.0.1',
  '1.10.0',
  '2.0.0',
];

test('versions are ordered as in Semantic Versioning (R-NEWS-02)', () => {
  for (const [at, version] of inOrder.entries()) {
    expect(inOrder.filter((other) => isNewer(version, other))).toEqual(inOrder.slice(0, at));
  }
});

test('build metadata makes no version newer', () => {
  expect([isNewer('1.0.0+2', '1.0.0+1'), isNewer('1.0.0+1', '1.0.0+2'), isNewer('1.0.0-a+2', '1.0.0+1')]).toEqual([
    false,
    false,
    false,
  ]);
});
