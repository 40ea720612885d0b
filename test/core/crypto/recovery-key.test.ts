import { describe, expect, test } from 'vitest';
import { wrapKey, createRecoveryPair, unwrapKey } from '../../../src/core/crypto/recovery-key.ts';

const master = Buffer.alloc(32, 0x5e);

describe('a recovery key (R-KEY-10)', () => {
  test('opens what was locked up for it', () => {
    for (let turn = 0; turn < 50; turn += 1) {
      const { recoveryKey: words, publicKey } = createRecoveryPair();
      expect(words).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){13}[0-9A-HJKMNP-TV-Z]{4}$/);
      expect(unwrapKey(words, wrapKey(master, publicKey)).equals(master)).toBe(true);
    }
  });

  test('is read as people type', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const locked = wrapKey(master, publicKey);
    const typed = [
      words.toLowerCase(),
      words.replaceAll('-', ' '),
      words.replaceAll('-', ''),
      `  ${words}\n`,
      words.replaceAll('0', 'o').replaceAll('1', 'l'),
    ];
    for (const one of typed) expect(unwrapKey(one, locked).equals(master)).toBe(true);
  });

  test('with a letter wrong is refused as misspelt, wherever it is', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const locked = wrapKey(master, publicKey);
    for (let at = 0; at < words.length; at += 1) {
      if (words[at] === '-') continue;
      const wrong = `${words.slice(0, at)}${words[at] === 'A' ? 'B' : 'A'}${words.slice(at + 1)}`;
      expect(() => unwrapKey(wrong, locked)).toThrow(
        expect.objectContaining({ code: 'invalid_input', message: expect.stringMatching(/not spelled right/) as string }),
      );
    }
    for (const wrong of ['', 'U', words.slice(0, -1), `${words}0`])
      expect(() => unwrapKey(wrong, locked)).toThrow(/not spelled right/);
  });

  test('of another memory is refused as such', () => {
    const locked = wrapKey(master, createRecoveryPair().publicKey);
    expect(() => unwrapKey(createRecoveryPair().recoveryKey, locked)).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringMatching(/another memory/) as string }),
    );
  });

  test('opens nothing that was changed', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const locked = wrapKey(master, publicKey);
    for (let at = 0; at < locked.length; at += 1) {
      // The top bit of the other's public key carries nothing.
      const changed = Buffer.from(locked);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => unwrapKey(words, changed), `byte ${at}`).toThrow(/another memory/);
    }
  });
});
