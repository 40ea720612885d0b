import { expect, test } from 'vitest';
import { keySources } from '../../../../src/core/crypto/keys/key-sources.ts';
import { A_KEY } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const placesOf = (desktop: boolean, environment: Record<string, string> = {}) =>
  keySources({ environment, folder: tempFolder(), desktop })('0123456789abcdef').map(({ name, createsOnFirstStart }) => [
    name.replace(/ \(.*\)| in .*/, ''),
    createsOnFirstStart,
  ]);

test('a desktop makes its key in the keychain of the system, and nothing else makes one by itself (R-KEY-11)', () => {
  expect(placesOf(true)[0]).toEqual(['the OS keychain', true]);
  expect(
    placesOf(true)
      .slice(1)
      .some(([, creates]) => creates),
  ).toBe(false);
  expect(placesOf(false).some(([, creates]) => creates)).toBe(false);
});

test('what the environment names goes before, on a desktop too (R-KEY-01)', () => {
  expect(placesOf(true, { HELMDECK_MEMORY_KEY: A_KEY })).toEqual([[expect.any(String), false]]);
});
