import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './keychain-check.ts';
import { unlockKeyring } from './keychain-keyring.ts';
import {
  assertState,
  copyOf,
  FACTS,
  fingerprint,
  handedIn,
  MEMORY,
  open,
  placeOf,
  recall,
  remember,
  theKey,
} from './keychain-memory.ts';
import { withoutKey } from './keychain-without.ts';

/** Wrong keys. */
export async function mismatch(): Promise<void> {
  await unlockKeyring();
  const key = await theKey();
  const place = await placeOf();
  await place.save('current', randomBytes(32));
  await withoutKey('another 32 bytes in the keychain', { state: 'mismatch', mend: () => place.save('current', key) });
  await check(
    'R-KEY-01 R-KEY-07 a wrong HELMDECK_MEMORY_KEY is reported, although the right key is in the keychain',
    async () => {
      await using store = await open(MEMORY, handedIn({ HELMDECK_MEMORY_KEY: randomBytes(32).toString('hex') }));
      return assertState(store.status().key, 'mismatch');
    },
  );
}

export async function malformed(): Promise<void> {
  await unlockKeyring();
  const key = await theKey();
  const place = await placeOf();
  const before = fingerprint(MEMORY);
  const short = randomBytes(31);
  await place.save('current', short);
  await check('R-KEY-02 31 bytes in the keychain: the start fails with a message that names the keychain and not the value', () =>
    stops(() => open(MEMORY), /the OS keychain must contain exactly 64 hexadecimal/, short.toString('hex'), 'key_unavailable'),
  );
  await check('R-KEY-04 31 bytes in the keychain: memory.db stays byte for byte', () =>
    assert.equal(fingerprint(MEMORY), before),
  );
  await place.save('current', key);
  await check('R-KEY-08 31 bytes in the keychain: ok again once the key is back', async () => {
    await using store = await open(MEMORY);
    await recall(store, FACTS);
  });
}

/** Keys that the environment provides. They need no keychain. */
export async function environment(): Promise<void> {
  const key = randomBytes(32).toString('hex');
  const places = handedIn({ HELMDECK_MEMORY_KEY: key });
  {
    await using store = await open(MEMORY, places);
    await remember(store, FACTS);
  }
  const wrong = { HELMDECK_MEMORY_KEY: randomBytes(32).toString('hex') };
  await withoutKey('another 32 bytes in HELMDECK_MEMORY_KEY', {
    state: 'mismatch',
    places: handedIn(wrong),
    mend: () => (wrong.HELMDECK_MEMORY_KEY = key),
  });
  const before = fingerprint(MEMORY);
  for (const [what, text] of [
    ['31 bytes', key.slice(2)],
    ['a newline after the key', `${key}\n`],
    ['a space before the key', ` ${key}`],
    ['33 bytes', `${key}00`],
    ['nothing', ''],
  ] as const) {
    await check(
      `R-KEY-02 ${what} in HELMDECK_MEMORY_KEY: the start fails with a message that names the variable and not its value`,
      async () => {
        await stops(() => open(MEMORY, handedIn({ HELMDECK_MEMORY_KEY: text })), /^HELMDECK_MEMORY_KEY must/, text.trim());
        assert.equal(fingerprint(MEMORY), before);
      },
    );
  }
  const file = join(MEMORY, '../the.key');
  for (const [what, end] of [
    ['a newline', '\n'],
    ['a Windows newline', '\r\n'],
    ['nothing', ''],
  ] as const) {
    await check(`R-KEY-01 a file of HELMDECK_MEMORY_KEY_FILE with ${what} after the key is read`, async () => {
      writeFileSync(file, key + end, { mode: 0o600 });
      await using store = await open(MEMORY, handedIn({ HELMDECK_MEMORY_KEY_FILE: file }));
      await recall(store, FACTS);
    });
  }
  await check(
    'R-KEY-02 two newlines after the key in that file: the start fails with a message that names the variable',
    async () => {
      writeFileSync(file, `${key}\n\n`);
      await stops(() => open(MEMORY, handedIn({ HELMDECK_MEMORY_KEY_FILE: file })), /HELMDECK_MEMORY_KEY_FILE must/, key);
    },
  );
  await check('R-KEY-01 a key file with a newline after the key is read', async () => {
    const folder = copyOf('with-key-file');
    writeFileSync(join(folder, 'memory.key'), `${key}\n`, { mode: 0o600 });
    await using store = await open(folder, handedIn({}));
    await recall(store, FACTS);
  });
}

async function stops(start: () => Promise<unknown>, told: RegExp, secret: string, code = 'invalid_config'): Promise<void> {
  await assert.rejects(start(), (error: Error) => {
    assert.match(error.message, told);
    assert.ok(secret === '' || !error.message.includes(secret), 'the message contains the wrong key');
    return 'code' in error && error.code === code;
  });
}
