import { createHmac, generateKeyPairSync, sign as signWith } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { decodeJwt } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OperationRequest } from '../../../src/contract/operations.ts';
import { isClockInDoubt } from '../../../src/contract/status.ts';
import { MintInput, type RevokeInput } from '../../../src/contract/token.ts';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import { readTokenSecret } from '../../../src/core/crypto/keys/token-secret.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import type { MemoryStore, Vault } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE, SECOND, START } from '../../support/clock.ts';
import { openTestMemory, theOwner } from '../../support/memory.ts';
import { A_KEY, manualKeySource, openFileStore, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const SECRET = 'a secret that an operator shares with us, long enough';
const NOW = START / SECOND;

type Json = Record<string, unknown>;

const part = (text: string | Buffer): string => Buffer.from(text).toString('base64url');

/** Signs a token with the given texts as its parts, valid or not. */
function signed(header: string, payload: string | Buffer, { secret = SECRET, hash = 'sha256' } = {}): string {
  const signedText = `${part(header)}.${part(payload)}`;
  return `${signedText}.${createHmac(hash, secret).update(signedText).digest('base64url')}`;
}

const usual: Json = { iss: 'helmdeck', sub: 'me', exp: NOW + 3600 };
const header = (over: Json = {}): string => JSON.stringify({ alg: 'HS256', typ: 'JWT', ...over });
const claims = (over: Json = {}): string => JSON.stringify({ ...usual, ...over });
const aToken = (over: Json = {}, how: { secret?: string; hash?: string } = {}): string => signed(header(), claims(over), how);
/** The usual claims without one of them. */
const without = (name: string): string => signed(header(), claims({ [name]: undefined }));

/** A registry with the operator's secret and a vault that is always open. */
async function overRam(clock: ManualClock = manualClock(), secret: string | undefined = SECRET) {
  const store = new RamStore(clock);
  const tokens = await opened(store, secret);
  return { tokens, clock, store };
}

async function opened(store: MemoryStore, secret?: string, vault: Vault = store.vault): Promise<TokenRegistry> {
  const doubtful = (): boolean => isClockInDoubt(store.status().clock);
  const tokens = await TokenRegistry.open({ vault, now: () => store.now(), doubtful, secret });
  onTestFinished(() => tokens[Symbol.asyncDispose]());
  return tokens;
}

/** The vault of a store, with some of its functions replaced. */
const vaultOf = ({ vault }: MemoryStore, otherwise: Partial<Omit<Vault, 'revision'>>): Vault => ({
  read: (name) => vault.read(name),
  write: (name, text) => vault.write(name, text),
  update: (name, change) => vault.update(name, change),
  delete: (name) => vault.delete(name),
  names: () => vault.names(),
  revokeToken: (id, until) => vault.revokeToken(id, until),
  revokedTokens: () => vault.revokedTokens(),
  ...otherwise,
});

const mint = (over: Partial<MintInput> = {}): MintInput => ({ ...MintInput().parse({ name: 'Laptop' }), ...over });
const revoke = (id: string, unrecorded = false): RevokeInput => ({ id, unrecorded });

const refusal = (why: RegExp) => ({ code: 'invalid_token', message: expect.stringMatching(why) as string });
const NOT_OURS = /was not created for this memory/;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const byRsa = (): string => {
  const signedText = `${part(header({ alg: 'RS256' }))}.${part(claims())}`;
  return `${signedText}.${signWith('sha256', Buffer.from(signedText), privateKey).toString('base64url')}`;
};

describe('a token that is refused', () => {
  test.each<{ why: string; token: unknown; says: RegExp }>([
    { why: 'an empty text', token: '', says: NOT_OURS },
    { why: 'a number', token: 42, says: /is not a token/ },
    { why: 'undefined', token: undefined, says: /is not a token/ },
    { why: 'a list', token: [aToken()], says: /is not a token/ },
    { why: 'arbitrary text', token: 'let me in', says: NOT_OURS },
    { why: 'a text that is far too long', token: 'a'.repeat(8193), says: /8192 characters/ },
    { why: 'a valid token that is too long', token: aToken({ note: 'x'.repeat(8192) }), says: /8192 characters/ },
    { why: 'three empty parts', token: '..', says: NOT_OURS },
    { why: 'another algorithm name', token: signed(header({ alg: 'hs256' }), claims()), says: NOT_OURS },
    { why: 'no algorithm', token: signed(JSON.stringify({ typ: 'JWT' }), claims()), says: NOT_OURS },
    { why: 'alg none without a signature', token: `${part(header({ alg: 'none' }))}.${part(claims())}.`, says: NOT_OURS },
    { why: 'alg none with a signature', token: signed(header({ alg: 'none' }), claims()), says: NOT_OURS },
    { why: 'alg None', token: signed(header({ alg: 'None' }), claims()), says: NOT_OURS },
    { why: 'HS384', token: signed(header({ alg: 'HS384' }), claims(), { hash: 'sha384' }), says: NOT_OURS },
    { why: 'HS512', token: signed(header({ alg: 'HS512' }), claims(), { hash: 'sha512' }), says: NOT_OURS },
    { why: 'HS512 declared as HS256', token: signed(header(), claims(), { hash: 'sha512' }), says: NOT_OURS },
    { why: 'RS256', token: byRsa(), says: NOT_OURS },
    { why: 'an HMAC declared as RS256', token: signed(header({ alg: 'RS256' }), claims()), says: NOT_OURS },
    { why: 'a list of algorithms', token: signed(header({ alg: ['HS256'] }), claims()), says: NOT_OURS },
    { why: 'another secret', token: aToken({}, { secret: `${SECRET}.` }), says: NOT_OURS },
    { why: 'an empty secret', token: aToken({}, { secret: '' }), says: NOT_OURS },
    { why: 'no signature', token: aToken().replace(/\.[^.]*$/, '.'), says: NOT_OURS },
    { why: 'two parts', token: aToken().replace(/\.[^.]*$/, ''), says: NOT_OURS },
    { why: 'an extra empty part', token: `${aToken()}.`, says: NOT_OURS },
    { why: 'an extra part', token: `${aToken()}.${part('{}')}`, says: NOT_OURS },
    { why: 'five parts, as in an encrypted token', token: 'a.b.c.d.e', says: NOT_OURS },
    { why: 'a truncated signature', token: aToken().slice(0, -4), says: NOT_OURS },
    { why: 'a trailing space', token: `${aToken()} `, says: NOT_OURS },
    { why: 'a trailing line break', token: `${aToken()}\n`, says: NOT_OURS },
    { why: 'the scheme before the token', token: `Bearer ${aToken()}`, says: NOT_OURS },
    { why: 'a critical extension', token: signed(header({ crit: ['b64'], b64: true }), claims()), says: NOT_OURS },
    { why: 'an unencoded payload', token: signed(header({ crit: ['b64'], b64: false }), claims()), says: NOT_OURS },
    { why: 'an unknown critical extension', token: signed(header({ crit: ['x'], x: 1 }), claims()), says: NOT_OURS },
    { why: 'the URL of a key', token: signed(header({ jku: 'http://127.0.0.1/' }), claims()), says: NOT_OURS },
    { why: 'an embedded key', token: signed(header({ jwk: { kty: 'oct', k: 'AA' } }), claims()), says: NOT_OURS },
    { why: 'a key id', token: signed(header({ kid: '../../dev/null' }), claims()), says: NOT_OURS },
    { why: 'a header with two algorithms', token: signed('{"alg":"none","alg":"HS256"}', claims()), says: NOT_OURS },
    { why: 'a header that is a list', token: signed('["HS256"]', claims()), says: NOT_OURS },
    { why: 'a header that is not JSON', token: signed('{"alg":"HS256"', claims()), says: NOT_OURS },
    { why: 'an empty payload', token: signed(header(), ' '), says: /a JSON object/ },
    { why: 'a payload that is a list', token: signed(header(), '[]'), says: /a JSON object/ },
    { why: 'a payload that is null', token: signed(header(), 'null'), says: /a JSON object/ },
    {
      why: 'a payload that is not UTF-8',
      token: signed(header(), Buffer.from(claims({ note: '\u00ff' }), 'latin1')),
      says: /a JSON object/,
    },
    { why: 'a payload with a byte order mark', token: signed(header(), `\uFEFF${claims()}`), says: /a JSON object/ },
    {
      why: 'two subjects',
      token: signed(header(), claims().replace('{', '{"sub":"you",')),
      says: /a JSON object/,
    },
    {
      why: 'two subjects, one of them spelt with an escape',
      token: signed(header(), claims().replace('{', String.raw`{"s\u0075b":"you",`)),
      says: /a JSON object/,
    },
    {
      why: 'two equal member names in a nested object',
      token: signed(header(), claims({ a: [{ b: 'c' }] }).replace('"b":"c"', '"b":"c" , "b" : {}')),
      says: /a JSON object/,
    },
  ])('for $why (R-AUTH-01)', async ({ token, says }) => {
    const { tokens } = await overRam();
    await expect(tokens.verify(token as string, 'rest')).rejects.toMatchObject(refusal(says));
  });

  test.each<{ why: string; token: string; says: RegExp }>([
    { why: 'no issuer', token: without('iss'), says: /iss must be helmdeck/ },
    { why: 'another issuer', token: aToken({ iss: 'helmdecks' }), says: /iss must/ },
    { why: 'the issuer in capitals', token: aToken({ iss: 'HELMDECK' }), says: /iss must/ },
    { why: 'a list of issuers', token: aToken({ iss: ['helmdeck'] }), says: /iss must/ },
    { why: 'no subject', token: without('sub'), says: /its claim sub is missing/ },
    { why: 'an empty subject', token: aToken({ sub: '' }), says: /sub must/ },
    { why: 'a subject with a colon', token: aToken({ sub: 'me:session' }), says: /sub must/ },
    { why: 'a subject with a space', token: aToken({ sub: 'you and me' }), says: /sub must/ },
    { why: 'a subject with a line end', token: aToken({ sub: 'me\n' }), says: /sub must/ },
    { why: 'a subject with a zero', token: aToken({ sub: 'me\0' }), says: /sub must/ },
    { why: 'a subject beyond ASCII', token: aToken({ sub: 'mé' }), says: /sub must/ },
    { why: 'a subject that looks like another', token: aToken({ sub: 'm\u0435' }), says: /sub must/ },
    { why: 'a subject of 129 characters', token: aToken({ sub: 'a'.repeat(129) }), says: /sub must/ },
    { why: 'a subject that is a number', token: aToken({ sub: 7 }), says: /sub must/ },
    { why: 'no end', token: without('exp'), says: /exp must/ },
    { why: 'an end that is a text', token: aToken({ exp: String(NOW + 60) }), says: /exp must/ },
    { why: 'an end that is null', token: aToken({ exp: null }), says: /exp must/ },
    {
      why: 'an end beyond every number',
      token: signed(header(), claims().replace(/"exp":\d+/, '"exp":1e999')),
      says: /exp must/,
    },
    { why: 'an end that is now', token: aToken({ exp: NOW }), says: /has expired/ },
    { why: 'an end long ago', token: aToken({ exp: NOW - 3600 }), says: /has expired/ },
    { why: 'an end before all time', token: aToken({ exp: -1 }), says: /has expired/ },
  ])('for $why (R-AUTH-01)', async ({ token, says }) => {
    const { tokens } = await overRam();
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(says));
  });

  test.each<{ why: string; over: Json; says: RegExp }>([
    { why: 'another audience', over: { aud: 'helmdeck' }, says: /aud must be helmdeck-memory/ },
    { why: 'other audiences', over: { aud: ['helmdeck', 'x'] }, says: /aud must/ },
    { why: 'an audience that is null', over: { aud: null }, says: /aud must/ },
    { why: 'a beginning to come', over: { nbf: NOW + 61 }, says: /is not valid yet/ },
    { why: 'a beginning that is a text', over: { nbf: String(NOW) }, says: /nbf must/ },
    { why: 'being made in the future', over: { iat: NOW + 61 }, says: /is not valid yet/ },
    { why: 'being made at no time', over: { iat: 'yesterday' }, says: /iat must/ },
    { why: 'an empty id', over: { jti: '' }, says: /jti must/ },
    { why: 'an id that is a number', over: { jti: 7 }, says: /jti must/ },
    { why: 'an id with a space', over: { jti: 'a b' }, says: /jti must/ },
    { why: 'an id of 129 characters', over: { jti: 'a'.repeat(129) }, says: /jti must/ },
    { why: 'an empty client', over: { client: '' }, says: /client must/ },
    { why: 'a client of blanks', over: { client: '   ' }, says: /client must/ },
    { why: 'a client of 65 characters', over: { client: 'a'.repeat(65) }, says: /client must/ },
    { why: 'a client with markup', over: { client: '<b>Claude</b>' }, says: /client must/ },
    { why: 'a client with a line end', over: { client: 'Claude\n' }, says: /client must/ },
    { why: 'a client beyond ASCII', over: { client: 'Clаude' }, says: /client must/ },
    { why: 'a client that is null', over: { client: null }, says: /client must/ },
    { why: 'an unknown scope', over: { scopes: ['memory:read', 'root'] }, says: /scopes\.1 must/ },
    { why: 'a scope in capitals', over: { scopes: ['ADMIN'] }, says: /scopes\.0 must/ },
    { why: 'scopes that are a text', over: { scopes: 'memory:read admin' }, says: /scopes must/ },
    { why: 'scopes that are null', over: { scopes: null }, says: /scopes must/ },
    { why: 'scopes that are an object', over: { scopes: { admin: true } }, says: /scopes must/ },
  ])('for $why (R-AUTH-02)', async ({ over, says }) => {
    const { tokens } = await overRam();
    await expect(tokens.verify(aToken(over), 'rest')).rejects.toMatchObject(refusal(says));
  });

  test('is never quoted in the failure (R-AUTH-01)', async () => {
    const { tokens } = await overRam();
    const sent = [
      aToken({ sub: 'zebra:zebra' }),
      aToken({ scopes: ['zebra'] }),
      signed(header({ crit: ['zebra'], zebra: 1 }), claims()),
    ];
    for (const token of [...sent, 'zebra', 'zebra.zebra.zebra']) {
      const error: unknown = await tokens.verify(token, 'rest').catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'invalid_token' });
      expect(error).not.toHaveProperty('cause');
      expect(String(error)).not.toMatch(/zebra/);
    }
  });

  test('can differ from a valid one in a single character (R-AUTH-01)', async () => {
    const { tokens } = await overRam();
    const valid = aToken({ jti: 'token-1', client: 'Claude Desktop', scopes: ['memory:read'] });
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/. \n%\u00e4'.split('');
    // Tested with and without the valid token in the cache.
    for (const known of [false, true]) {
      if (known) await tokens.verify(valid, 'rest');
      await fc.assert(
        fc.asyncProperty(fc.nat(valid.length), fc.constantFrom(...letters), fc.constantFrom(0, 1), async (at, letter, taken) => {
          const changed = valid.slice(0, at) + letter + valid.slice(at + taken);
          fc.pre(changed !== valid);
          await expect(tokens.verify(changed, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
        }),
        { numRuns: 500 },
      );
      for (const last of letters) {
        const changed = valid.slice(0, -1) + last;
        if (changed === valid) continue;
        await expect(tokens.verify(changed, 'rest'), last).rejects.toMatchObject({ code: 'invalid_token' });
      }
      for (let at = 0; at < valid.length; at += 1) {
        const cut = valid.slice(0, at) + valid.slice(at + 1);
        await expect(tokens.verify(cut, 'rest'), String(at)).rejects.toMatchObject({ code: 'invalid_token' });
      }
      for (const padded of ['=', '==', '%3D']) {
        await expect(tokens.verify(valid + padded, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
        await expect(tokens.verify(valid.replaceAll('.', `${padded}.`), 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
      }
    }
  });

  test('can be any unsigned text, and the kind of failure is always the same (R-AUTH-01)', async () => {
    const { tokens } = await overRam();
    const parts = fc.oneof(fc.string(), fc.json(), fc.constantFrom(header(), claims(), header({ alg: 'none' }), '{}', '[]'));
    const text = fc.oneof(
      fc.string(),
      fc.array(parts.map(part), { maxLength: 5 }).map((all) => all.join('.')),
      fc.tuple(parts, parts).map(([head, body]) => signed(head, body, { secret: 'another' })),
    );
    await fc.assert(
      fc.asyncProperty(text, async (token) => {
        await expect(tokens.verify(token, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
      }),
      { numRuns: 500 },
    );
  });

  test('gets a clear failure also if the operator signed arbitrary claims (R-AUTH-02)', async () => {
    const { tokens } = await overRam();
    const names = fc.constantFrom('iss', 'sub', 'exp', 'aud', 'nbf', 'iat', 'jti', 'client', 'scopes', '__proto__', 'toString');
    await fc.assert(
      fc.asyncProperty(names, fc.jsonValue(), async (name, value) => {
        const result = await tokens
          .verify(signed(header(), JSON.stringify({ ...usual, [name]: value })), 'rest')
          .catch((thrown: unknown) => thrown);
        expect(result).toSatisfy((all: Json) => all['code'] === 'invalid_token' || all['transport'] === 'rest');
      }),
      { numRuns: 500 },
    );
  });
});

describe('a token that is accepted', () => {
  const scopes = new Set(['memory:read', 'memory:write', 'packs:run']);
  test.each<{ why: string; token: string; caller: Json }>([
    {
      why: 'the required claims only (R-AUTH-05, R-AUTH-06)',
      token: aToken(),
      caller: { subject: 'me', client: 'unknown', scopes, token: expect.stringMatching(/^sha256-[\w-]{22}$/) },
    },
    {
      why: 'all known claims (R-AUTH-02)',
      token: aToken({
        aud: 'helmdeck-memory',
        nbf: NOW,
        iat: NOW - 1,
        jti: 'urn:uuid:0',
        client: 'Claude Desktop 2.0_b-1',
        scopes: ['admin', 'admin'],
      }),
      caller: { subject: 'me', client: 'Claude Desktop 2.0_b-1', token: 'urn:uuid:0', scopes: new Set(['admin']) },
    },
    { why: 'an unknown id (R-AUTH-05)', token: aToken({ jti: 'never-seen' }), caller: { token: 'never-seen' } },
    { why: 'one of several audiences (R-AUTH-02)', token: aToken({ aud: ['x', 'helmdeck-memory'] }), caller: { subject: 'me' } },
    { why: 'a clock a minute ahead (R-AUTH-02)', token: aToken({ iat: NOW + 60, nbf: NOW + 60 }), caller: { subject: 'me' } },
    { why: 'times with a fraction (R-AUTH-02)', token: aToken({ iat: NOW - 0.5, exp: NOW + 0.5 }), caller: { subject: 'me' } },
    {
      why: 'a subject of 128 characters (R-AUTH-01)',
      token: aToken({ sub: '~'.repeat(128) }),
      caller: { subject: '~'.repeat(128) },
    },
    {
      why: 'a subject with punctuation (R-AUTH-01)',
      token: aToken({ sub: `!"#$%&'()*+,-./;<=>?@[]^_{|}` }),
      caller: { client: 'unknown' },
    },
    {
      why: 'a subject with a special meaning in JavaScript (R-ISO-05)',
      token: aToken({ sub: '__proto__' }),
      caller: { subject: '__proto__' },
    },
    {
      why: 'a client of 64 characters (R-AUTH-02)',
      token: aToken({ client: 'a'.repeat(64) }),
      caller: { client: 'a'.repeat(64) },
    },
    { why: 'an empty list of scopes (R-AUTH-06)', token: aToken({ scopes: [] }), caller: { scopes: new Set() } },
    { why: 'one scope (R-AUTH-06)', token: aToken({ scopes: ['memory:read'] }), caller: { scopes: new Set(['memory:read']) } },
    {
      why: 'quarantine (R-AUTH-06)',
      token: aToken({ quarantine: true }),
      caller: { quarantined: true, client: 'unknown' },
    },
    { why: 'no quarantine (R-AUTH-06)', token: aToken({ quarantine: false }), caller: { client: 'unknown' } },
    {
      why: 'unknown claims (R-AUTH-05)',
      token: aToken({ name: 'x', admin: true, scope: 'admin' }),
      caller: { scopes },
    },
    { why: 'another type, or none (R-AUTH-01)', token: signed(header({ typ: 'at+jwt' }), claims()), caller: { subject: 'me' } },
    {
      why: 'a header with the algorithm only (R-AUTH-01)',
      token: signed('{ "alg" : "HS256" }', claims()),
      caller: { subject: 'me' },
    },
    {
      why: 'JSON with white space and escapes (R-AUTH-01)',
      token: signed(header(), ` ${claims().replace('"sub"', String.raw`"s\u0075b" `)}\n`),
      caller: { subject: 'me' },
    },
    {
      why: 'equal names in different objects (R-AUTH-01)',
      token: aToken({ a: { b: 1 }, c: [{ b: 1 }, { b: 2 }], b: '{"b":1,"b":2}' }),
      caller: { subject: 'me' },
    },
    {
      why: 'an expiry in a thousand years (R-AUTH-05)',
      token: aToken({ exp: NOW + 1000 * 365 * 86_400 }),
      caller: { subject: 'me' },
    },
  ])('with $why', async ({ token, caller }) => {
    const { tokens } = await overRam();
    for (const transport of ['rest', 'mcp']) {
      expect(await tokens.verify(token, transport)).toMatchObject({ ...caller, transport });
    }
  });

  test('is refused once it has expired, cached or not (R-AUTH-01)', async () => {
    const { tokens, clock } = await overRam();
    const token = aToken({ exp: NOW + 10 });
    await tokens.verify(token, 'rest');
    await clock.advance(10 * SECOND - 1);
    await tokens.verify(token, 'rest');
    await clock.advance(1);
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/has expired/));
    await expect(tokens.verify(aToken({ exp: NOW + 10, jti: 'other' }), 'rest')).rejects.toMatchObject(refusal(/has expired/));
  });

  test('without an id gets a derived id, which differs between tokens (R-AUTH-05)', async () => {
    const { tokens } = await overRam();
    const [one, other] = [await tokens.verify(aToken(), 'rest'), await tokens.verify(aToken({ exp: NOW + 7200 }), 'rest')];
    expect(one.token).not.toBe(other.token);
    expect((await tokens.verify(aToken(), 'mcp')).token).toBe(one.token);
  });

  test('stays valid when many other tokens are used (R-AUTH-05)', async () => {
    const { tokens } = await overRam();
    for (let turn = 0; turn < 600; turn += 1) {
      expect(await tokens.verify(aToken({ jti: `token-${turn % 300}` }), 'rest')).toMatchObject({ token: `token-${turn % 300}` });
    }
  });
});

describe('the signing secret (R-AUTH-03)', () => {
  const file = (content: string | Buffer): Record<string, string> => {
    const path = join(tempFolder(), 'secret');
    writeFileSync(path, content, { mode: 0o600 });
    return { HELMDECK_JWT_SECRET_FILE: path };
  };
  const long = 'ä'.repeat(16);

  test.each<{ why: string; environment: Record<string, string>; secret: string | undefined }>([
    { why: 'nothing', environment: {}, secret: undefined },
    { why: 'a variable', environment: { HELMDECK_JWT_SECRET: SECRET }, secret: SECRET },
    { why: '32 bytes in fewer characters', environment: { HELMDECK_JWT_SECRET: long }, secret: long },
    { why: 'blanks, as they are', environment: { HELMDECK_JWT_SECRET: ` ${long} ` }, secret: ` ${long} ` },
    { why: 'a line end in a variable, as it is', environment: { HELMDECK_JWT_SECRET: `${long}\n` }, secret: `${long}\n` },
  ])('is read from $why', ({ environment, secret }) => {
    expect(readTokenSecret(environment)).toBe(secret);
  });

  test.each([`${SECRET}\n`, `${SECRET}\r\n`, SECRET])('is read from a file, without a final line break', (content) => {
    expect(readTokenSecret(file(content))).toBe(SECRET);
    expect(readTokenSecret(file(`${content}\n\n`))).not.toBe(SECRET);
    expect(readTokenSecret({ ...file('short'), HELMDECK_JWT_SECRET: SECRET })).toBe(SECRET);
  });

  test.each<{ why: string; environment: () => Record<string, string>; says: RegExp }>([
    { why: 'an empty variable', environment: () => ({ HELMDECK_JWT_SECRET: '' }), says: /^HELMDECK_JWT_SECRET must/ },
    { why: '31 bytes', environment: () => ({ HELMDECK_JWT_SECRET: 'zebra'.padEnd(31, 'z') }), says: /^HELMDECK_JWT_SECRET must/ },
    {
      why: '31 bytes and a line end',
      environment: () => file(`${'zebra'.padEnd(31, 'z')}\n`),
      says: /HELMDECK_JWT_SECRET_FILE must/,
    },
    { why: 'an empty file', environment: () => file(''), says: /HELMDECK_JWT_SECRET_FILE must/ },
    { why: 'what is no UTF-8', environment: () => file(Buffer.alloc(40, 0xff)), says: /HELMDECK_JWT_SECRET_FILE must/ },
    {
      why: 'no file',
      environment: () => ({ HELMDECK_JWT_SECRET_FILE: '/nowhere/zebra' }),
      says: /HELMDECK_JWT_SECRET_FILE names cannot be read/,
    },
  ])('stops the start by the name of its variable for $why', ({ environment, says }) => {
    const set = environment();
    expect(() => readTokenSecret(set)).toThrow(
      expect.objectContaining({
        code: 'invalid_config',
        message: expect.stringMatching(says) as string,
      }),
    );
    expect(() => readTokenSecret(set)).not.toThrow(/zebra/);
  });

  test('that differs makes the tokens of another start invalid', async () => {
    const { store } = await overRam();
    const other = await opened(store, `${SECRET}!`);
    await expect(other.verify(aToken(), 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
  });

  test('is otherwise created by the memory, stays the same after a restart, and is in no file in plain text', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const { token } = await tokens.mint(mint());
    const secret = (await store.vault.read('signing secret')) ?? '';
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    expect(filesBelow(folder).filter(({ bytes }) => bytes.includes(secret) || bytes.includes(token))).toEqual([]);

    const again = await openFileStore(folder, clock);
    expect(await (await opened(again)).verify(token, 'rest')).toMatchObject({ subject: 'me' });
    expect(await again.vault.read('signing secret')).toBe(secret);
  });

  test('is replaced if its seal is broken, and its tokens become invalid', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    const { token } = await (await opened(first)).mint(mint());
    await first[Symbol.asyncDispose]();
    const db = new Sqlite(join(folder, 'memory.db'));
    db.prepare("UPDATE meta SET value = zeroblob(80) WHERE name = 'vault signing secret'").run();
    db.close();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
    const renewed = await tokens.mint(mint());
    expect(await tokens.verify(renewed.token, 'rest')).toMatchObject({ token: renewed.id });
    expect((await tokens.list()).tokens).toHaveLength(2);
  });

  test('is created once, also for concurrent calls', async () => {
    const clock = manualClock();
    const source = manualKeySource({ at: 'absent' });
    const folder = tempFolder();
    await (await openFileStore(folder, clock))[Symbol.asyncDispose]();
    const store = await openFileStore(folder, clock, () => [source]);
    let secrets = 0;
    const update: typeof store.vault.update = (name, change) => {
      if (name === 'signing secret') secrets += 1;
      return store.vault.update(name, change);
    };
    const tokens = await opened(store, undefined, vaultOf(store, { update }));
    source.set({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
    await clock.advance(3 * SECOND);
    const [one, other] = await Promise.all([
      tokens.mint(mint()),
      tokens.mint(mint()),
      tokens.verify(aToken(), 'rest').catch(() => undefined),
      tokens.verify(aToken(), 'rest').catch(() => undefined),
    ]);
    expect(secrets).toBe(1);
    const made = [one, other];
    const again = await opened(store);
    for (const { token, id } of made) {
      for (const both of [tokens, again]) expect(await both.verify(token, 'rest')).toMatchObject({ token: id });
    }
  });

  test('outlives the rotation of the master key', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = () => [fileSource(folder)];
    const store = await openFileStore(folder, clock, sources);
    const tokens = await opened(store);
    const { token, id } = await tokens.mint(mint());
    await store.upkeep?.rotate();
    await tokens.verify(token, 'rest');
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    const again = await opened(await openFileStore(folder, clock, sources));
    expect(await again.verify(token, 'rest')).toMatchObject({ token: id });
    expect((await again.list()).tokens).toMatchObject([{ id }]);
  });
});

describe('minting (R-AUTH-04)', () => {
  test('returns a token with the requested claims', async () => {
    const { tokens } = await overRam();
    const receipt = await tokens.mint(mint({ name: 'OpenClaw on the laptop', client: 'OpenClaw', days: 30 }));
    expect(receipt).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      name: 'OpenClaw on the laptop',
      client: 'OpenClaw',
      subject: 'me',
      scopes: ['memory:read', 'memory:write', 'packs:run'],
      created_at: new Date(START).toISOString(),
      expires_at: new Date(START + 30 * DAY).toISOString(),
      token: expect.any(String) as string,
    });
    expect(decodeJwt(receipt.token)).toEqual({
      iss: 'helmdeck',
      aud: 'helmdeck-memory',
      sub: 'me',
      client: 'OpenClaw',
      scopes: ['memory:read', 'memory:write', 'packs:run'],
      iat: NOW,
      exp: NOW + 30 * 86_400,
      jti: receipt.id,
    });
    expect(await tokens.verify(receipt.token, 'mcp')).toEqual({
      subject: 'me',
      client: 'OpenClaw',
      transport: 'mcp',
      token: receipt.id,
      scopes: new Set(['memory:read', 'memory:write', 'packs:run']),
    });
  });

  test.each(['command-line', 'window', 'Window', 'Command Line', 'command_line.', 'pack-test', 'Unreadable Author'])(
    'is refused for a client named %s, which the product signs with itself (R-AUTH-13)',
    async (client) => {
      const { as } = await openTestMemory();
      await expect(as(theOwner)('mintToken', { name: 'Laptop', client })).rejects.toMatchObject({
        code: 'invalid_input',
        message: 'client is a name that Helmdeck Memory uses for its own writes; choose another.',
      });
      expect(await as(theOwner)('mintToken', { name: 'Laptop', client: `${client}s` })).toMatchObject({ client: `${client}s` });
    },
  );

  test.each<{ why: string; input: Omit<OperationRequest<'mintToken'>, 'name'>; quarantined: boolean }>([
    { why: 'an unknown client', input: { client: 'my-agent' }, quarantined: true },
    { why: 'a client without a name', input: {}, quarantined: true },
    { why: 'a name that only looks known', input: { client: 'Codex' }, quarantined: true },
    { why: 'a client that connect recognises', input: { client: 'codex' }, quarantined: false },
    { why: 'an admin', input: { client: 'my-agent', scopes: ['admin'] }, quarantined: false },
    { why: 'an unknown client that the owner trusts', input: { client: 'my-agent', quarantine: false }, quarantined: false },
    { why: 'a known client that the owner does not trust', input: { client: 'codex', quarantine: true }, quarantined: true },
  ])('quarantines $why: $quarantined (R-AUTH-06)', async ({ input, quarantined }) => {
    const { as, tokens } = await openTestMemory();
    const receipt = await as(theOwner)('mintToken', { name: 'Laptop', ...input });
    expect(receipt.quarantined ?? false).toBe(quarantined);
    expect((await tokens.verify(receipt.token, 'mcp')).quarantined ?? false).toBe(quarantined);
    expect((await as(theOwner)('tokens', {})).tokens).toMatchObject([quarantined ? { quarantined: true } : { id: receipt.id }]);
    expect('quarantined' in ((await as(theOwner)('tokens', {})).tokens[0] ?? {})).toBe(quarantined);
  });

  test('is not quarantined as an admin, who could accept its own writes (R-AUTH-06)', async () => {
    const { as } = await openTestMemory();
    await expect(as(theOwner)('mintToken', { name: 'x', scopes: ['admin'], quarantine: true })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^quarantine /) as string,
    });
  });

  test('limits the lifetime to a year, which is the default', async () => {
    const { tokens, clock } = await overRam();
    const { token, expires_at } = await tokens.mint(mint());
    expect(expires_at).toBe(new Date(START + 365 * DAY).toISOString());
    await clock.advance(365 * DAY - 1);
    await tokens.verify(token, 'rest');
    await clock.advance(1);
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/has expired/));
  });

  test.each<{ why: string; input: Json; names: RegExp }>([
    { why: 'no name', input: {}, names: /^name/ },
    { why: 'a blank name', input: { name: ' ' }, names: /^name/ },
    { why: 'a name of 65 characters', input: { name: 'a'.repeat(65) }, names: /^name/ },
    { why: 'a name with a line end', input: { name: 'a\nb' }, names: /^name/ },
    { why: 'a blank client', input: { name: 'a', client: ' ' }, names: /^client/ },
    { why: 'a subject with a colon', input: { name: 'a', subject: 'a:b' }, names: /^subject/ },
    { why: 'an unknown scope', input: { name: 'a', scopes: ['root'] }, names: /^scopes/ },
    { why: 'no scope at all', input: { name: 'a', scopes: [] }, names: /^scopes/ },
    { why: 'no day', input: { name: 'a', days: 0 }, names: /^days/ },
    { why: '366 days', input: { name: 'a', days: 366 }, names: /^days/ },
    { why: 'an unknown field', input: { name: 'a', exp: 1 }, names: /unknown field/ },
  ])('is refused with $why', ({ input, names }) => {
    const { error } = MintInput().safeParse(input);
    const [issue] = error?.issues ?? [];
    expect(`${issue?.path.join('.')} ${issue?.message}`).toMatch(names);
  });

  test('stops at 200 valid tokens, also for concurrent calls', async () => {
    const { tokens, clock } = await overRam();
    const [short] = await Promise.all([
      tokens.mint(mint({ days: 1 })),
      ...Array.from({ length: 199 }, () => tokens.mint(mint())),
    ]);
    const tooMany = { code: 'quota_exceeded', message: expect.stringMatching(/revoke unused tokens/) as string };
    await expect(tokens.mint(mint())).rejects.toMatchObject(tooMany);
    await tokens.revoke(revoke((await tokens.list()).tokens.find(({ id }) => id !== short.id)?.id ?? ''));
    await tokens.mint(mint());
    await expect(tokens.mint(mint())).rejects.toMatchObject(tooMany);
    await clock.advance(DAY);
    await tokens.mint(mint());
    await expect(tokens.mint(mint())).rejects.toMatchObject(tooMany);
  });
});

describe('the list of tokens (R-AUTH-04)', () => {
  test('shows the tokens made here, newest first, without the token itself', async () => {
    const { tokens, clock } = await overRam();
    expect(await tokens.list()).toEqual({ tokens: [] });
    const first = await tokens.mint(mint({ name: 'first' }));
    await clock.advance(SECOND);
    const { token, ...second } = await tokens.mint(mint({ name: 'second', scopes: ['admin'] }));
    await tokens.verify(aToken({ jti: 'from-elsewhere' }), 'rest');
    const { tokens: listed } = await tokens.list();
    expect(listed).toMatchObject([{ name: 'second' }, { name: 'first', id: first.id }]);
    expect(listed[0]).toEqual(second);
    expect(JSON.stringify(listed)).not.toContain(token);
  });

  test('shows the last use of each, also after a restart', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const used = await tokens.mint(mint({ name: 'used' }));
    await tokens.mint(mint({ name: 'unused' }));
    await clock.advance(HOUR);
    await tokens.verify(used.token, 'rest');
    await clock.advance(10 * SECOND);
    await tokens.verify(used.token, 'mcp');
    const at = new Date(START + HOUR + 10 * SECOND).toISOString();
    const asListed = [
      expect.not.objectContaining({ last_used_at: expect.anything() as unknown }) as unknown,
      expect.objectContaining({ id: used.id, last_used_at: at }) as unknown,
    ];
    expect((await tokens.list()).tokens.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toEqual(asListed);
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    const again = await opened(await openFileStore(folder, clock));
    expect((await again.list()).tokens.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toEqual(asListed);
  });

  test('stores a last use at most once a minute, in the background', async () => {
    const clock = manualClock();
    const store = new RamStore(clock);
    let kept = 0;
    let held: Promise<void> | undefined;
    const vault = vaultOf(store, {
      async write(name, text) {
        await held;
        kept += 1;
        await store.vault.write(name, text);
      },
    });
    const tokens = await opened(store, SECRET, vault);
    const { token } = await tokens.mint(mint());
    kept = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    for (let second = 0; second < 60; second += 1) {
      await tokens.verify(token, 'rest');
      await clock.advance(SECOND);
    }
    resolve();
    held = undefined;
    await tokens.list();
    expect(kept).toBe(1);
    await tokens.verify(token, 'rest');
    await tokens.verify(token, 'rest');
    await tokens.list();
    expect(kept).toBe(2);
    await clock.advance(SECOND);
    await tokens.verify(token, 'rest');
    await tokens[Symbol.asyncDispose]();
    expect(kept).toBe(3);
    await tokens[Symbol.asyncDispose]();
    expect(kept).toBe(3);
  });

  test('drops an expired token after 30 days, unless the clock is in doubt', async () => {
    const { tokens, clock, store } = await overRam();
    await tokens.mint(mint({ days: 1 }));
    await clock.advance(31 * DAY - 1);
    expect((await tokens.list()).tokens).toHaveLength(1);
    await clock.advance(1);
    expect((await tokens.list()).tokens).toHaveLength(0);
    expect((await store.vault.names()).filter((name) => name.startsWith('token '))).toEqual([]);

    await tokens.mint(mint({ days: 1 }));
    clock.jump(100 * DAY);
    expect((await tokens.list()).tokens).toHaveLength(1);
    clock.jump(-100 * DAY);
    expect((await tokens.list()).tokens).toHaveLength(1);
  });
});

describe('pausing', () => {
  test('refuses a token until it is resumed, and closes its streams (R-CONN-09)', async () => {
    const { tokens } = await overRam();
    const { id, token } = await tokens.mint(mint());
    const other = await tokens.mint(mint());
    await tokens.verify(token, 'rest');
    const heard: string[] = [];
    using _one = tokens.onRevoked((revoked) => heard.push(revoked));
    expect(await tokens.pause({ id, paused: true })).toEqual({ id, paused: true });
    expect(heard).toEqual([id]);
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/is paused/));
    await tokens.verify(other.token, 'rest');
    expect((await tokens.list()).tokens.map((row) => row.paused)).toEqual(
      (await tokens.list()).tokens.map((row) => (row.id === id ? true : undefined)),
    );
    await tokens.pause({ id, paused: true });
    await tokens.pause({ id, paused: false });
    await tokens.verify(token, 'rest');
    expect((await tokens.list()).tokens.some(({ paused }) => paused)).toBe(false);
  });

  test('holds after a restart, and ends with the token (R-CONN-09)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const { id, token } = await tokens.mint(mint());
    await tokens.pause({ id, paused: true });
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    const kept = await openFileStore(folder, clock);
    const again = await opened(kept);
    await expect(again.verify(token, 'rest')).rejects.toMatchObject(refusal(/is paused/));
    await again.revoke(revoke(id));
    expect((await kept.vault.names()).filter((name) => name.includes(id))).toEqual([]);
    await expect(again.pause({ id, paused: false })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('that cannot be stored still applies until the program ends, and fails (R-CONN-09)', async () => {
    const store = new RamStore(manualClock());
    const broken = vaultOf(store, {
      write: (name, text) => (name.startsWith('paused') ? Promise.reject(new Error('disk')) : store.vault.write(name, text)),
    });
    const tokens = await opened(store, SECRET, broken);
    const { id, token } = await tokens.mint(mint());
    await expect(tokens.pause({ id, paused: true })).rejects.toThrow('disk');
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/is paused/));
  });
});

describe('revoking', () => {
  test('makes a token invalid from the next request on, and removes it from the list (R-AUTH-04)', async () => {
    const { tokens } = await overRam();
    const revoked = await tokens.mint(mint());
    const stays = await tokens.mint(mint());
    await tokens.verify(revoked.token, 'rest');
    const heard: string[] = [];
    using _one = tokens.onRevoked((id) => heard.push(id));
    tokens.onRevoked((id) => heard.push(`never ${id}`))[Symbol.dispose]();
    const revoking = tokens.revoke(revoke(revoked.id));
    expect(await revoking).toEqual({ id: revoked.id });
    expect(heard).toEqual([revoked.id]);
    await expect(tokens.verify(revoked.token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    await tokens.verify(stays.token, 'rest');
    expect((await tokens.list()).tokens.map(({ id }) => id)).toEqual([stays.id]);
    // A second request returns the same result.
    expect(await tokens.revoke(revoke(revoked.id))).toEqual({ id: revoked.id });
  });

  test('also rejects a token that is being verified at that moment (R-AUTH-04)', async () => {
    const { tokens } = await overRam();
    const { token, id } = await tokens.mint(mint());
    const outcomes = await Promise.allSettled([
      tokens.revoke(revoke(id)),
      tokens.verify(token, 'rest'),
      tokens.verify(token, 'rest'),
    ]);
    expect(outcomes[0].status).toBe('fulfilled');
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
  });

  test('of an unknown id is refused, unless `unrecorded` is set (R-AUTH-05)', async () => {
    const { tokens } = await overRam();
    const token = aToken({ jti: 'from-elsewhere' });
    await tokens.verify(token, 'rest');
    await expect(tokens.revoke(revoke('from-elsewhere'))).rejects.toMatchObject({ code: 'not_found' });
    await tokens.verify(token, 'rest');
    await tokens.revoke(revoke('from-elsewhere', true));
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));

    // A token without an id claim is revoked by its derived id.
    const { token: given } = await tokens.verify(aToken(), 'rest');
    await tokens.revoke(revoke(given, true));
    await expect(tokens.verify(aToken(), 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
  });

  test('that cannot be stored still applies until the program ends, and fails (R-AUTH-04)', async () => {
    const clock = manualClock();
    const store = new RamStore(clock);
    const vault = vaultOf(store, { revokeToken: () => Promise.reject(new Error('disk')) });
    const tokens = await opened(store, SECRET, vault);
    const { token, id } = await tokens.mint(mint());
    await expect(tokens.revoke(revoke(id))).rejects.toThrow('disk');
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    await tokens.list();
    // It can be tried again, because its record is still there.
    expect(await store.vault.names()).toContain(`token ${id}`);
  });

  test('holds after a restart (R-AUTH-10)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const { token, id } = await tokens.mint(mint());
    await tokens.revoke(revoke(id));
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    const again = await opened(await openFileStore(folder, clock));
    await expect(again.verify(token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    expect(await again.list()).toEqual({ tokens: [] });
  });

  test('holds after a restore of an older backup that contains the token’s record (R-AUTH-10)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const revoked = await tokens.mint(mint());
    const stays = await tokens.mint(mint());
    const backup = await store.upkeep?.backup();
    await tokens.revoke(revoke(revoked.id));
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup: backup?.file ?? '', clock, sources: withKey() });
    const again = await opened(await openFileStore(folder, clock));
    await expect(again.verify(revoked.token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    await again.verify(stays.token, 'rest');
    expect((await again.list()).tokens.map(({ id }) => id)).toEqual([stays.id]);
  });

  test('works while the memory is locked or its key is absent (R-AUTH-10)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    const [one, other] = [await tokens.mint(mint()), await tokens.mint(mint())];
    store.lock();
    await tokens.revoke(revoke(one.id));
    await expect(tokens.verify(one.token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();

    const source = manualKeySource({ at: 'absent' });
    const keyless = await openFileStore(folder, clock, () => [source]);
    const again = await opened(keyless);
    await again.revoke(revoke(other.id));
    source.set({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
    await clock.advance(3 * SECOND);
    await expect(again.verify(other.token, 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
    expect(await again.list()).toEqual({ tokens: [] });
  });
});

describe('while the key is absent', () => {
  test('a locked memory verifies tokens as before (R-AUTH-11)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    const tokens = await opened(store);
    const known = await tokens.mint(mint());
    const unknown = await tokens.mint(mint());
    await tokens.verify(known.token, 'rest');
    store.lock();
    for (const { token, id } of [known, unknown]) expect(await tokens.verify(token, 'rest')).toMatchObject({ token: id });
    await expect(tokens.verify(aToken(), 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
    await expect(tokens.mint(mint())).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(tokens.list()).rejects.toMatchObject({ code: 'key_unavailable' });
    await clock.advance(2 * MINUTE);
    await tokens.verify(known.token, 'rest');
    await store.unlock();
    await clock.advance(2 * MINUTE);
    await tokens.verify(known.token, 'rest');
    expect((await tokens.list()).tokens.find(({ id }) => id === known.id)).toMatchObject({
      last_used_at: new Date(START + 4 * MINUTE).toISOString(),
    });
  });

  test('a memory that was locked before the first call verifies tokens, too (R-AUTH-11)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    const { token, id } = await (await opened(first)).mint(mint());
    await first[Symbol.asyncDispose]();
    const store = await openFileStore(folder, clock);
    const tokens = await opened(store);
    store.lock();
    expect(await tokens.verify(token, 'rest')).toMatchObject({ token: id });
  });

  test('a start without the key answers key_unavailable until the key is back (R-AUTH-11)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    const { token, id } = await (await opened(first)).mint(mint());
    await first[Symbol.asyncDispose]();

    const source = manualKeySource({ at: 'locked', why: 'it is closed' });
    const store = await openFileStore(folder, clock, () => [source]);
    const tokens = await opened(store);
    const state = store.status().key;
    const remedy = 'remedy' in state ? state.remedy : '';
    for (const sent of [token, aToken(), 'nonsense']) {
      await expect(tokens.verify(sent, 'rest')).rejects.toMatchObject({
        code: 'key_unavailable',
        message: expect.stringContaining(remedy) as string,
      });
    }
    expect(await tokens.verify(tokens.ownerToken(), 'rest')).toMatchObject({ client: 'command-line' });
    source.set({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
    await clock.advance(3 * SECOND);
    expect(await tokens.verify(token, 'rest')).toMatchObject({ token: id });
    await expect(tokens.verify(aToken(), 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
  });

  test('a signing secret from the environment needs no key (R-AUTH-11)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    await first.vault.revokeToken('revoked', Number.MAX_SAFE_INTEGER);
    await first[Symbol.asyncDispose]();
    const store = await openFileStore(folder, clock, () => [manualKeySource({ at: 'absent' })]);
    const tokens = await opened(store, SECRET);
    expect(await tokens.verify(aToken({ jti: 'a' }), 'rest')).toMatchObject({ token: 'a' });
    await expect(tokens.verify(aToken({ jti: 'revoked' }), 'rest')).rejects.toMatchObject(refusal(/has been revoked/));
  });
});

describe("the owner's token", () => {
  const owner = { subject: 'me', client: 'command-line', transport: 'rest', scopes: new Set(['admin']) };

  test('has all rights until the program ends, and none after that (R-AUTH-06)', async () => {
    const { tokens, clock, store } = await overRam();
    const token = tokens.ownerToken();
    expect(tokens.ownerToken()).toBe(token);
    expect(await tokens.verify(token, 'rest')).toMatchObject(owner);
    await clock.advance(1000 * DAY);
    expect(await tokens.verify(token, 'rest')).toMatchObject(owner);
    const next = await opened(store, SECRET);
    await expect(next.verify(token, 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
    expect(next.ownerToken()).not.toBe(token);
    expect((await tokens.list()).tokens).toEqual([]);
  });

  test('cannot be created with the signing secret (R-AUTH-01)', async () => {
    const { tokens } = await overRam();
    const copy = signed(header(), JSON.stringify(decodeJwt(tokens.ownerToken())), { secret: `${SECRET}?` });
    await expect(tokens.verify(copy, 'rest')).rejects.toMatchObject(refusal(NOT_OURS));
  });

  test.each(['locked', 'unavailable'] as const)('works while the key is %s', async (at) => {
    const folder = tempFolder();
    const clock = manualClock();
    await (await openFileStore(folder, clock))[Symbol.asyncDispose]();
    const tokens = await opened(await openFileStore(folder, clock, () => [manualKeySource({ at, why: 'of the test' })]));
    expect(await tokens.verify(tokens.ownerToken(), 'rest')).toMatchObject(owner);
  });
});
