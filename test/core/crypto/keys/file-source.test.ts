import { chmodSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import { A_KEY, ANOTHER_KEY } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const key = Buffer.from(A_KEY, 'hex');

describe('a key file in the data folder (R-KEY-01)', () => {
  test('does not exist until its owner creates it', async () => {
    expect(await fileSource(tempFolder()).read('current')).toEqual({ at: 'absent' });
    expect(fileSource(tempFolder()).createsOnFirstStart).toBe(false);
  });

  test('is readable by its owner only, and returns the saved key', async () => {
    const folder = tempFolder();
    const source = fileSource(folder);
    await source.save('current', key);
    expect(await source.read('current')).toEqual({ at: 'found', key });
    expect(statSync(join(folder, 'memory.key')).mode & 0o777).toBe(0o600);
    await source.save('next', Buffer.from(ANOTHER_KEY, 'hex'));
    await source.save('current', Buffer.from(ANOTHER_KEY, 'hex'));
    await source.remove('next');
    expect(await source.read('next')).toEqual({ at: 'absent' });
    expect(readFileSync(join(folder, 'memory.key'), 'utf8')).toBe(`${ANOTHER_KEY}\n`);
  });

  test('that other users can read is refused (R-KEY-02)', async () => {
    const folder = tempFolder();
    await fileSource(folder).save('current', key);
    chmodSync(join(folder, 'memory.key'), 0o640);
    await expect(fileSource(folder).read('current')).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.stringMatching(/chmod 600 memory\.key/) as string,
    });
  });

  test('that is a symbolic link is refused, even if its target does not exist (R-KEY-02)', async () => {
    const folder = tempFolder();
    symlinkSync(join(folder, 'other'), join(folder, 'memory.key'));
    await expect(fileSource(folder).read('current')).rejects.toMatchObject({ code: 'key_unavailable' });
    writeFileSync(join(folder, 'other'), A_KEY, { mode: 0o600 });
    await expect(fileSource(folder).read('current')).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('with other content is refused, and the failure does not quote the content (R-KEY-02)', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'memory.key'), 'hunter2', { mode: 0o600 });
    const refused = fileSource(folder).read('current');
    await expect(refused).rejects.toMatchObject({
      message: expect.stringMatching(/^The key file memory\.key must contain/) as string,
    });
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringMatching(/hunter2/) as string });
  });
});
