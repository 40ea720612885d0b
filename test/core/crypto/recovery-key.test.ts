import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { wrapKey, createRecoveryPair, unwrapKey } from '../../../src/core/crypto/recovery-key.ts';

const master = Buffer.alloc(32, 0x5e);

describe('a recovery key (R-KEY-10)', () => {
  test('unwraps the master key that was wrapped for it', () => {
    for (let turn = 0; turn < 50; turn += 1) {
      const { recoveryKey: words, publicKey } = createRecoveryPair();
      expect(words).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){13}[0-9A-HJKMNP-TV-Z]{4}$/);
      expect(unwrapKey(words, wrapKey(master, publicKey)).equals(master)).toBe(true);
    }
  });

  test('is accepted in lower case, without hyphens, and with letters in place of similar digits', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const wrapped = wrapKey(master, publicKey);
    const typed = [
      words.toLowerCase(),
      words.replaceAll('-', ' '),
      words.replaceAll('-', ''),
      `  ${words}\n`,
      words.replaceAll('0', 'o').replaceAll('1', 'l'),
    ];
    for (const one of typed) expect(unwrapKey(one, wrapped).equals(master)).toBe(true);
  });

  test('with one wrong character is refused as mistyped', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const wrapped = wrapKey(master, publicKey);
    for (let at = 0; at < words.length; at += 1) {
      if (words[at] === '-') continue;
      const wrong = `${words.slice(0, at)}${words[at] === 'A' ? 'B' : 'A'}${words.slice(at + 1)}`;
      expect(() => unwrapKey(wrong, wrapped)).toThrow(
        expect.objectContaining({ code: 'invalid_input', message: expect.stringMatching(/typing error/) as string }),
      );
    }
    for (const wrong of ['', 'U', words.slice(0, -1), `${words}0`])
      expect(() => unwrapKey(wrong, wrapped)).toThrow(/typing error/);
  });

  test('of another memory is refused with that reason', () => {
    const wrapped = wrapKey(master, createRecoveryPair().publicKey);
    expect(() => unwrapKey(createRecoveryPair().recoveryKey, wrapped)).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringMatching(/another memory/) as string }),
    );
  });

  test('does not unwrap a changed record', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const wrapped = wrapKey(master, publicKey);
    for (let at = 0; at < wrapped.length; at += 1) {
      // Flip the lowest bit: X25519 ignores the top bit of a public key.
      const changed = Buffer.from(wrapped);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => unwrapKey(words, changed), `byte ${at}`).toThrow(/another memory/);
    }
  });

  test('wraps two master keys with the same one-time key pair safely, because two copies of a virtual machine can draw the same pair', () => {
    const { recoveryKey: words, publicKey } = createRecoveryPair();
    const once = generateKeyPairSync('x25519');
    const other = Buffer.alloc(32, 0xa1);
    const [one, two] = [wrapKey(master, publicKey, once), wrapKey(other, publicKey, once)];
    // With the same key and nonce, the XOR of the ciphertexts would equal the XOR of the master keys.
    const bodies = [one, two].map((wrapped) => wrapped.subarray(-48, -16)) as [Buffer, Buffer];
    expect(bodies[0].map((byte, at) => byte ^ (bodies[1][at] ?? 0))).not.toEqual(
      master.map((byte, at) => byte ^ (other[at] ?? 0)),
    );
    expect([unwrapKey(words, one), unwrapKey(words, two)]).toEqual([master, other]);
  });

  test('unwraps a record of the first format', () => {
    const words = '93AN-81VW-01SG-WJ92-9F34-X5N2-CMQF-J66Z-72KB-B4PP-ZF2K-F2KN-5541-PM3B';
    const wrapped = Buffer.from(
      '723c48e165c1990e6117aa53a1a606ead9175c16b5f783eb1de3151dfec88a16b3d9a76f0ef57190eb08185e32bedbae15f668aaac90d2c189ba243aaa239bb7ab7710a51e5f75c554ff6412a5e9d0a5',
      'hex',
    );
    expect(unwrapKey(words, wrapped)).toEqual(master);
  });
});
