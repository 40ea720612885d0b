import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './keychain-check.ts';

const src = join(import.meta.dirname, '../../src');

/** keytar's `findCredentials` crashes the process on a locked keyring, and no test could catch that. */
export async function calls(): Promise<void> {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name));
  const those = (pattern: RegExp): string[] => files.filter((name) => pattern.test(readFileSync(join(src, name), 'utf8')));
  await check('R-KEY-06 no module calls findCredentials or findPassword', () => {
    assert.deepEqual(those(/find(Credentials|Password)['"\]?.]*\(|[.['"]find(Credentials|Password)/), []);
    return `${files.length} files`;
  });
  await check('R-KEY-06 only one module imports keytar', () =>
    assert.deepEqual(those(/['"]keytar['"]/), ['core/crypto/keys/keychain.ts']),
  );
}
