import { expect, test } from 'vitest';
import { keySources } from '../../../../src/core/crypto/keys/key-sources.ts';
import { A_KEY } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const sourcesOf = (desktop: boolean, environment: Record<string, string> = {}) =>
  keySources({ environment, folder: tempFolder(), desktop })('0123456789abcdef').map(({ name, createsOnFirstStart }) => [
    name.replace(/ \(.*\)| in .*/, ''),
    createsOnFirstStart,
  ]);

test('a desktop creates its key in the OS keychain, and no other source creates a key without a request (R-KEY-11)', () => {
  expect(sourcesOf(true)[0]).toEqual(['the OS keychain', true]);
  expect(
    sourcesOf(true)
      .slice(1)
      .some(([, creates]) => creates),
  ).toBe(false);
  expect(sourcesOf(false).some(([, creates]) => creates)).toBe(false);
});

test('a key in the environment takes precedence, also on a desktop (R-KEY-01)', () => {
  expect(sourcesOf(true, { HELMDECK_MEMORY_KEY: A_KEY })).toEqual([[expect.any(String), false]]);
});
