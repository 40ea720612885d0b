import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environmentSource } from '../../../../src/core/crypto/keys/environment-source.ts';
import { readProvidedCredentials } from '../../../../src/core/crypto/keys/provided-credentials.ts';
import { readTokenSecret } from '../../../../src/core/crypto/keys/token-secret.ts';
import { A_KEY, ANOTHER_KEY } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const file = (content: string, mode = 0o600): string => {
  const path = join(tempFolder(), 'key');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
};

describe('a key from the environment (R-KEY-01)', () => {
  test('is undefined if no variable for the current key is set', () => {
    expect(environmentSource({})).toBeUndefined();
    expect(environmentSource({ HELMDECK_MEMORY_KEY_NEXT: A_KEY })).toBeUndefined();
  });

  test('has 64 hexadecimal characters, in upper or lower case', async () => {
    expect(await environmentSource({ HELMDECK_MEMORY_KEY: A_KEY.toUpperCase() })?.read('current')).toEqual({
      at: 'found',
      key: Buffer.from(A_KEY, 'hex'),
    });
  });

  test('can be in a file, with or without a final line break', async () => {
    for (const end of ['', '\n', '\r\n']) {
      const source = environmentSource({ HELMDECK_MEMORY_KEY_FILE: file(A_KEY + end) });
      expect(await source?.read('current')).toEqual({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
    }
  });

  test('is read from the variable rather than the file', async () => {
    const source = environmentSource({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_FILE: file(ANOTHER_KEY) });
    expect(await source?.read('current')).toMatchObject({ key: Buffer.from(A_KEY, 'hex') });
  });

  test('for the next slot has its own variables', async () => {
    const source = environmentSource({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT_FILE: file(ANOTHER_KEY) });
    expect(await source?.read('next')).toMatchObject({ key: Buffer.from(ANOTHER_KEY, 'hex') });
    expect(await environmentSource({ HELMDECK_MEMORY_KEY: A_KEY })?.read('next')).toEqual({ at: 'absent' });
  });

  test.each([
    { what: 'an empty value', value: '' },
    { what: '31 bytes', value: 'ab'.repeat(31) },
    { what: '33 bytes', value: 'ab'.repeat(33) },
    { what: 'a line break', value: `${A_KEY}\n` },
    { what: 'a leading space', value: ` ${A_KEY}` },
    { what: 'a prefix', value: `0x${'ab'.repeat(31)}` },
    { what: 'characters that are not hexadecimal digits', value: 'xy'.repeat(32) },
  ])('with $what stops the start; the failure names the variable, not the value (R-KEY-02)', async ({ value }) => {
    const refused = environmentSource({ HELMDECK_MEMORY_KEY: value })?.read('current');
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_config',
      message:
        'HELMDECK_MEMORY_KEY must contain exactly 64 hexadecimal characters; enter the correct key there, or create a new key with: openssl rand -hex 32.',
    });
  });

  test.each([
    { what: 'is missing', path: () => join(tempFolder(), 'nowhere'), says: /HELMDECK_MEMORY_KEY_FILE names cannot be read/ },
    { what: 'is malformed', path: () => file(`${A_KEY}\n\n`), says: /HELMDECK_MEMORY_KEY_FILE must contain exactly 64/ },
  ])('in a file that $what stops the start (R-KEY-02)', async ({ path, says }) => {
    const refused = environmentSource({ HELMDECK_MEMORY_KEY_FILE: path() })?.read('current');
    await expect(refused).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(says) as string });
  });
});

describe.skipIf(process.platform === 'win32')('a file that holds a secret (R-KEY-15)', () => {
  const NOBODY = 65_534;
  const credentials: readonly [name: string, read: (path: string) => unknown, text: string][] = [
    ['HELMDECK_MEMORY_KEY_FILE', (path) => environmentSource({ HELMDECK_MEMORY_KEY_FILE: path })?.read('current'), A_KEY],
    ['HELMDECK_JWT_SECRET_FILE', (path) => readTokenSecret({ HELMDECK_JWT_SECRET_FILE: path }), 's'.repeat(32)],
    ['HELMDECK_GITHUB_TOKEN_FILE', (path) => readProvidedCredentials({ HELMDECK_GITHUB_TOKEN_FILE: path }), 'ghp_1234567890'],
  ];
  const reading = async (read: (path: string) => unknown, path: string): Promise<unknown> => await read(path);

  test.each(credentials)(
    'named by %s is refused while other users can open it, and the failure says what to do',
    async (name, read, text) => {
      for (const mode of [0o666, 0o644, 0o640, 0o604, 0o620]) {
        await expect(reading(read, file(text, mode)), mode.toString(8)).rejects.toMatchObject({
          code: 'invalid_config',
          message: `Other users have access to the file that ${name} names. Run chmod 600 on the file, and replace the secret if other users could read it.`,
        });
      }
      for (const mode of [0o600, 0o400]) await expect(reading(read, file(text, mode))).resolves.toBeDefined();
    },
  );

  test.skipIf(process.getuid?.() !== 0)('is refused if another user owns it', async () => {
    const path = file(A_KEY);
    chownSync(path, NOBODY, NOBODY);
    const read = environmentSource({ HELMDECK_MEMORY_KEY_FILE: path })?.read('current');
    await expect(read).rejects.toMatchObject({ message: expect.stringMatching(/belongs to another user/) as string });
  });

  test.skipIf(process.getuid?.() !== 0)(
    'may be readable by every user if root owns it, because service managers provide it that way',
    () => {
      const path = file(A_KEY, 0o444);
      chmodSync(dirname(path), 0o755);
      const program = `import { readProvidedSecret } from './src/core/crypto/keys/provided-secret.ts'; console.log(readProvidedSecret(process.env, 'HELMDECK_MEMORY_KEY').text)`;
      const options = { uid: NOBODY, env: { HELMDECK_MEMORY_KEY_FILE: path }, encoding: 'utf8' } as const;
      expect(execFileSync(process.execPath, ['--input-type=module-typescript', '-e', program], options).trim()).toBe(A_KEY);
    },
  );
});
