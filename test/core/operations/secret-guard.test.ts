import { describe, expect, test } from 'vitest';
import { findSecret } from '../../../src/core/operations/secret-guard.ts';
import { CREDENTIAL } from '../../support/packs.ts';
import { measureBestCpu, machineSlowness } from '../../support/work.ts';
import { credentials } from './secrets/credentials.ts';
import { ordinaryFacts } from './secrets/ordinary-facts.ts';

const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1);

describe('a credential (R-FACT-18)', () => {
  test.each(credentials(1))('is reported as $kind: $text', ({ kind, text }) => {
    expect(findSecret(text)).toEqual({ kind });
  });

  test('is tested with at least a hundred examples', () => {
    expect(credentials(1).length).toBeGreaterThanOrEqual(100);
  });

  test('is found with any random characters', () => {
    const all = SEEDS.flatMap((seed) => credentials(seed));
    const missed = all.filter(({ text }) => !findSecret(text));
    expect(missed.length / all.length).toBeLessThan(0.001);
  });

  test('is found in the middle of a long text', () => {
    const longText = ordinaryFacts.filter((fact) => !fact.includes('PRIVATE KEY')).join('\n\n');
    expect(findSecret(longText)).toBeUndefined();
    for (const { kind, text } of credentials(2))
      expect(findSecret(`${longText}\n\n${text}\n\n${longText}`), text).toEqual({ kind });
  });

  test.each([
    ['a line break', '\n'],
    ['a tab', '\t'],
    ['a carriage return', '\r'],
    ['a letter of no alphabet', '\u0007'],
    ['a quotation mark', '"'],
  ])('is found in JSON after %s, in any field or field name, and in nested JSON', (_what, sign) => {
    for (const { text } of credentials(2)) {
      if (!findSecret(`log:${sign}${text}`)) continue;
      for (const held of [{ deep: [`log:${sign}${text}`] }, { [`log:${sign}${text}\n`]: 1 }]) {
        const json = JSON.stringify(held);
        expect(findSecret(json), json).toBeDefined();
        expect(findSecret(JSON.stringify({ body: json })), json).toBeDefined();
      }
    }
  });

  test('is found in JSON that escapes every character', () => {
    const spelled = Array.from(CREDENTIAL, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    expect(findSecret(`{"log":"${spelled}"}`)).toEqual({ kind: 'a GitHub token' });
  });

  test('is found after placeholders', () => {
    const text = `password: <your password>\npassword: changeme\npassword=password=Tr0ub4dor&3`;
    expect(findSecret(text)).toEqual({ kind: 'a password' });
  });

  test('is reported by its kind and never quoted', () => {
    const kinds = new Set(credentials(3).map(({ text }) => findSecret(text)?.kind));
    for (const kind of kinds) expect(kind).toMatch(/^an? [\w .-]{3,40}$/);
    for (const { text } of credentials(3)) expect(Object.keys(findSecret(text)!)).toEqual(['kind']);
  });
});

describe('an ordinary fact (R-FACT-18)', () => {
  test.each(ordinaryFacts)('passes: %s', (fact) => {
    expect(findSecret(fact)).toBeUndefined();
  });

  test('is tested with at least three hundred examples', () => {
    expect(new Set(ordinaryFacts).size).toBeGreaterThanOrEqual(300);
  });

  test('passes if it is a digest or an id, in any notation', () => {
    for (const [index, seed] of SEEDS.entries()) {
      const digest = Array.from({ length: 64 }, (_, at) => ((seed * 7919 + at * at * 31 + index * at) % 16).toString(16)).join(
        '',
      );
      for (const text of [
        digest,
        digest.toUpperCase(),
        `sha256:${digest}`,
        `commit ${digest.slice(0, 40)}`,
        `${digest.slice(0, 12)} is it`,
      ])
        expect(findSecret(text), text).toBeUndefined();
    }
  });
});

describe('the search for credentials (R-FACT-13)', () => {
  const SIZE = 100_000;
  const LIMIT_MS = 50;
  const fill = (unit: string, size = SIZE): string => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);

  /**
   * CPU time of a search. Other programs may slow the machine, so a slow run is repeated, and the repeated time is divided by the
   * measured slowness of the machine. A search that is really slow exceeds the limit every time.
   */
  const cost = (text: string, enough = LIMIT_MS): number => {
    const best = (): number => measureBestCpu(() => findSecret(text), enough);
    let least = best();
    if (enough === 0) return least;
    for (let turn = 0; turn < 3 && least >= enough; turn += 1) least = Math.min(least, best() / machineSlowness());
    return least;
  };

  const single = ['A', 'a', '0', '-', '/', '=', ':', '_', '.', '"', '\n', ' ', '\\', '(', 'é', '密', '\u{1f511}'];
  const pairs = [
    'a:',
    '\\n',
    '\\u00',
    'a=',
    'a.',
    'f0',
    'a-',
    'M',
    'N.',
    '1:',
    'x:1:',
    'AbC1',
    'aB1-',
    '://',
    '://a:',
    '://a:b',
    'a b ',
    ' "',
    '=\n',
  ];
  const beginnings = [
    'eyJ',
    'eyJa.',
    'eyJhbGciOiJIUzI1NiJ9.',
    'sk-',
    'sk-ant-',
    'ghp_',
    'AKIA',
    'EAA',
    'SK',
    'pat',
    'dp.',
    'xoxb-',
    'npm_',
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    'Private-Lines: 1\n',
    'sig=',
    '?sig=',
    'cookie: a=',
    'password is ',
    'password for ',
    'passwort',
    'v1.0-',
    'A3-',
    'tskey-auth-',
  ];
  const assignments = [
    'password',
    'password=',
    'password: ',
    'password ',
    'password"',
    'password is ',
    'password=a1b2c3',
    'pass',
    'p a s s ',
    'token=a1',
    'token: aaaa1aaaaaaaaaaaaaaaab',
    'token token: ',
    'API_KEY=ab12/',
    'key:',
    'key="a1B2c3D4"',
    '密码',
    '密码：',
    'login a password ',
    '--password ',
    '--token ',
    'curl ',
    'curl -u',
    'curl -b ',
    'curl -b a1=b2',
    'cookie name: "session", value: "',
    'li_at=',
    'li_at=aB1',
    'wifi password ',
    'password for a: ',
    'password was changed to ',
    'mysql -p',
    'mnemonic: ',
    'name: a_password value: ',
    'Bearer ',
    'Bearer a1B2c3D4e5F6g7H8',
    'authorization: basic ',
    'a.b-c_d:1/e=2!f ',
  ];

  test.each([...single, ...pairs, ...beginnings, ...assignments])('stays within the limit for repetitions of %j', (unit) => {
    expect(cost(fill(unit))).toBeLessThan(LIMIT_MS);
  });

  test.each([...beginnings, ...assignments])('stays within the limit for %j before one long word', (unit) => {
    for (const letter of ['a', 'A', '-', '=', ' ', 'aB1']) expect(cost(unit + fill(letter)), letter).toBeLessThan(LIMIT_MS);
  });

  test('grows linearly with the text', () => {
    for (const unit of ['password=', '密码：', 'sk-ant-', 'token=a1']) {
      // Measure both sizes equally often, so that only the text differs. Quadratic growth fails every time.
      const excess = (): number => cost(fill(unit, 4 * SIZE), 0) - 12 * cost(fill(unit, SIZE), 0);
      let least = excess();
      for (let turn = 0; turn < 3 && least >= 20; turn += 1) least = Math.min(least, excess());
      expect(least, unit).toBeLessThan(20);
    }
  });
});
