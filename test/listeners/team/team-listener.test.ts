import { chmodSync, copyFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CONNECTION_LIMITS } from '../../../src/listeners/limits.ts';
import { createAuthority } from '../../support/certificates.ts';
import { ALL_ROUTES, EVENTUALLY, sendRequest } from '../../support/listener.ts';
import { openTls, ownAddress, readToEnd, sendTls, serveTeam, TEAM_NAME } from '../../support/team.ts';
import { tempFolder } from '../../support/temp-folder.ts';

function openTcp(port: number, host: string, localAddress?: string): Socket {
  const socket = connectTcp({ port, host, ...(localAddress !== undefined && { localAddress }) });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => undefined);
}

describe('the server for other machines (R-TEAM-01)', () => {
  test('serves agents with TLS at a second address, and the loopback listener stays as it is', async () => {
    const { send, token, url, listener, teamPort } = await serveTeam();
    const ada = await token('ada');
    expect(listener.serverUrl).toBe(`https://${TEAM_NAME}:${teamPort}`);
    expect((await send('/healthz')).json).toEqual({ status: 'ok' });
    expect(await send('/api/v1/memory/store', { token: ada, body: { key: 'a', value: 'b' } })).toMatchObject({ status: 200 });
    expect((await sendRequest(url, '/api/v1/memory/fact?key=a', { token: ada })).json).toMatchObject({ value: 'b' });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  test.skipIf(ownAddress() === undefined)('serves agents at an address that other machines can reach', async () => {
    const host = ownAddress() ?? '';
    const { send } = await serveTeam({ host });
    expect((await send('/healthz', { headers: ['Host', host] })).status).toBe(200);
  });

  test('shows each subject their own memory only (R-TEAM-07, R-ISO-01)', async () => {
    const { send, token } = await serveTeam();
    const [ada, bob] = [await token('ada'), await token('bob')];
    await send('/api/v1/memory/store', { token: ada, body: { key: 'secret/plan', value: 'of Ada' } });
    await send('/api/v1/memory/store', { token: bob, body: { key: 'secret/plan', value: 'of Bob' } });
    expect((await send('/api/v1/memory/fact?key=secret/plan', { token: ada })).json).toMatchObject({ value: 'of Ada' });
    expect((await send('/api/v1/memory/search?q=plan', { token: bob })).text).not.toContain('of Ada');
    expect((await send('/api/v1/memory/callers', { token: bob })).text).not.toContain('ada');
    expect((await send('/api/v1/memory/export', { token: bob })).text).not.toContain('of Ada');
    await send('/api/v1/memory/forget', { token: bob, body: { scope: 'all' } });
    expect((await send('/api/v1/memory/fact?key=secret/plan', { token: ada })).status).toBe(200);
  });
});

describe('a request from another machine (R-TEAM-03)', () => {
  const forged = [
    ['X-Forwarded-For', '127.0.0.1'],
    ['X-Forwarded-Host', '127.0.0.1:7345'],
    ['X-Forwarded-Proto', 'http'],
    ['Forwarded', 'for=127.0.0.1;host=localhost'],
    ['X-Real-IP', '127.0.0.1'],
  ].flat();

  test('is refused with any admin token, whatever its path and headers', async () => {
    const { send, owner, token } = await serveTeam();
    const admin = await token('me', ['admin']);
    for (const [index, [method, path]] of ALL_ROUTES.entries()) {
      // Each request is a connection of its own, and one address can begin only a few per second.
      const tls = { localAddress: `127.0.2.${index + 1}` };
      for (const used of [owner, admin]) {
        for (const headers of [[], forged]) {
          const body = method === 'GET' ? {} : { body: {} };
          const { status, json } = await send(path, { method, token: used, headers, tls, ...body });
          expect([method, path, status, json.error]).toEqual([method, path, 403, 'insufficient_scope']);
        }
      }
    }
  });

  test('cannot use an admin operation with the token of a member', async () => {
    const { send, token } = await serveTeam();
    const member = await token('ada', ['memory:read', 'memory:write', 'packs:run']);
    const admin = ['/api/v1/tokens', '/api/v1/clients', '/api/v1/window-sessions', '/api/v1/activity?all=true'];
    for (const path of admin) expect((await send(path, { token: member })).json.error).toBe('insufficient_scope');
    for (const path of ['/api/v1/lock', '/api/v1/backup', '/api/v1/key/rotate', '/api/v1/tokens'])
      expect((await send(path, { token: member, body: {} })).json.error).toMatch(/insufficient_scope/);
  });

  test('finds neither the window, nor owner links, nor owner operations, nor a proof of identity', async () => {
    const { send, token, listener } = await serveTeam({ windowFolder: 'out/renderer' });
    const member = await token('ada');
    const link = new URL(listener.windowLink() ?? '').hash.slice('#link='.length);
    for (const path of [
      '/',
      '/index.html',
      '/window/open',
      '/window/call/tokens?subject=me',
      '/window/events',
      '/api/v1/owner/tokens',
      '/api/v1/window',
    ]) {
      for (const headers of [[], forged]) {
        const body = { link };
        expect([path, (await send(path, { body, headers })).status]).toEqual([path, 401]);
        expect([path, (await send(path, { token: member, body, headers })).status]).toEqual([path, 404]);
      }
    }
    expect((await send(`/healthz?challenge=${'a'.repeat(64)}`)).json).toMatchObject({ error: 'invalid_input' });
  });

  test('cannot use an MCP session that was opened on this machine with an admin token', async () => {
    const { send, owner, token, url } = await serveTeam();
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const headers = ['Accept', 'application/json, text/event-stream'];
    const opened = await sendRequest(url, '/api/v1/mcp', { token: owner, body, headers });
    const session = String(opened.headers['mcp-session-id']);
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
    const sent = { body: list, headers: [...headers, 'Mcp-Session-Id', session] };
    expect((await send('/api/v1/mcp', { ...sent, token: owner })).status).toBe(403);
    expect((await send('/api/v1/mcp', { ...sent, token: await token('me') })).status).toBe(404);
  });
});

describe('the Host of a request from another machine (R-TEAM-04)', () => {
  test('must be a name of the certificate, which prevents DNS rebinding', async () => {
    const { send, token, teamPort } = await serveTeam({ names: ['DNS:memory.test', 'DNS:*.team.test', 'IP:127.0.0.2'] });
    const member = await token('ada');
    const status = async (host: string): Promise<number> =>
      (await send('/api/v1/version', { token: member, headers: ['Host', host] })).status;
    for (const host of ['memory.test', 'MEMORY.test', `memory.test:${teamPort}`, 'memory.test:443', 'a.team.test', '127.0.0.2'])
      expect([host, await status(host)]).toEqual([host, 200]);
    const foreign = ['evil.example', 'localhost', '127.0.0.1', `127.0.0.1:${teamPort}`, 'memory.test.evil.example', 'team.test'];
    const crooked = ['a.b.team.test', 'memory.test.', 'x@memory.test', 'memory.test, evil.example', '[::1]', '', '*.team.test'];
    for (const host of [...foreign, ...crooked]) expect([host, await status(host)]).toEqual([host, 403]);
  });

  test('is never the common name of a certificate without alternative names', async () => {
    const authority = createAuthority();
    const files = authority.issue([`DNS:${TEAM_NAME}`], { withoutAlternativeNames: true });
    const { send } = await serveTeam({ authority, team: { certificate: files } });
    const tls = { checkServerIdentity: () => undefined };
    expect((await send('/healthz', { tls })).json.error).toBe('forbidden_host');
  });

  test('is one of HELMDECK_SERVER_HOSTS if that is set', async () => {
    const { send, listener } = await serveTeam({ team: { hosts: ['memory.example'] } });
    expect(listener.serverUrl).toBe('https://memory.example');
    for (const host of ['memory.example', 'memory.example:8443', 'MEMORY.example'])
      expect([host, (await send('/healthz', { headers: ['Host', host] })).status]).toEqual([host, 200]);
    expect((await send('/healthz', { headers: ['Host', 'memory.example.evil.test:8443'] })).status).toBe(403);
    expect((await send('/healthz')).status).toBe(403);
  });

  test('protects against pages of other origins, also of the same name without TLS', async () => {
    const { send, token } = await serveTeam();
    const member = await token('ada');
    const origins = ['https://evil.example', `http://${TEAM_NAME}`, `https://${TEAM_NAME}:8443`, 'null'];
    for (const origin of origins) {
      const headers = ['Host', TEAM_NAME, 'Origin', origin];
      expect((await send('/api/v1/version', { token: member, headers })).json.error).toBe('forbidden_origin');
    }
    const own = ['Host', TEAM_NAME, 'Origin', `https://${TEAM_NAME}`];
    expect((await send('/api/v1/version', { token: member, headers: own })).status).toBe(200);
  });

  test('cannot be replaced by a forwarded header', async () => {
    const { send } = await serveTeam();
    const headers = ['Host', 'evil.example', 'X-Forwarded-Host', TEAM_NAME, 'Forwarded', `host=${TEAM_NAME}`];
    expect((await send('/healthz', { headers })).json.error).toBe('forbidden_host');
  });
});

describe('TLS (R-TEAM-02)', () => {
  test('is at least version 1.2', async () => {
    const { teamPort, host, authority } = await serveTeam();
    const old = openTls(teamPort, {
      host,
      ca: authority.ca,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    await expect(old).rejects.toThrow(/protocol version/i);
    const now = await openTls(teamPort, { host, ca: authority.ca });
    expect(now.getProtocol()).toBe('TLSv1.3');
  });

  test('answers plain HTTP with one sentence, and closes', async () => {
    const { teamPort, host } = await serveTeam();
    const socket = openTcp(teamPort, host);
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${TEAM_NAME}\r\nAuthorization: Bearer x\r\n\r\n`);
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain('This server accepts only HTTPS');
  });

  test('closes connections that speak neither', async () => {
    const { teamPort, host, send } = await serveTeam();
    for (const bytes of ['\0\0\0\0', 'SSH-2.0-x\r\n', '\x16\x03\x01\xff\xff'.padEnd(600, 'x'), '\x80\x2e\x01']) {
      const socket = openTcp(teamPort, host);
      socket.end(Buffer.from(bytes, 'latin1'));
      expect(await readToEnd(socket)).not.toContain('200 OK');
    }
    expect((await send('/healthz')).status).toBe(200);
  });

  test('uses a renewed certificate from the next connection on, and keeps open connections', async () => {
    const authority = createAuthority();
    const folder = tempFolder();
    const files = { certificateFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
    const put = (one: typeof files): void => {
      copyFileSync(one.certificateFile, files.certificateFile);
      copyFileSync(one.keyFile, files.keyFile);
      chmodSync(files.keyFile, 0o600);
    };
    put(authority.issue([`DNS:${TEAM_NAME}`]));
    const warnings: string[] = [];
    const warn = (problem: string): void => void warnings.push(problem);
    const { teamPort, host, send } = await serveTeam({ authority, team: { certificate: files }, warn });
    const open = await openTls(teamPort, { host, ca: authority.ca });
    const serial = async (): Promise<string> => {
      const socket = await openTls(teamPort, { host, ca: authority.ca });
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    const first = await serial();
    put(authority.issue([`DNS:${TEAM_NAME}`, 'DNS:renewed.test']));
    await expect.poll(serial, EVENTUALLY).not.toBe(first);
    const second = await serial();
    // A pair that does not match is not used, and the earlier one stays.
    copyFileSync(authority.issue([`DNS:${TEAM_NAME}`]).certificateFile, files.certificateFile);
    await expect
      .poll(async () => {
        expect(await serial()).toBe(second);
        return warnings;
      }, EVENTUALLY)
      .toEqual([expect.stringMatching(/^The renewed certificate was not loaded, .* does not belong to the certificate/)]);
    expect((await send('/healthz', { headers: ['Host', 'renewed.test'] })).status).toBe(200);
    open.write(`GET /healthz HTTP/1.1\r\nHost: ${TEAM_NAME}\r\nConnection: close\r\n\r\n`);
    expect(await readToEnd(open)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('connections without a token (R-TEAM-06)', () => {
  test('of one address are limited before and after the handshake, and other addresses are served', async () => {
    const { teamPort, host, send, authority, token } = await serveTeam();
    const most = CONNECTION_LIMITS.anonymousPerAddress;
    const silent = Array.from({ length: 3 * most }, () => openTcp(teamPort, host, '127.0.0.9'));
    const open = (all: readonly Socket[]): number => all.filter(({ readyState }) => readyState === 'open').length;
    await expect.poll(() => open(silent), EVENTUALLY).toBe(most);
    expect((await send('/healthz')).status).toBe(200);
    const shaken = await Promise.all(
      Array.from({ length: most + 8 }, async () =>
        openTls(teamPort, { host, ca: authority.ca, localAddress: '127.0.0.10' }).catch(() => undefined),
      ),
    );
    const held = shaken.filter((socket) => socket !== undefined);
    for (const socket of held) socket.on('error', () => undefined).resume();
    await expect.poll(() => open(held), EVENTUALLY).toBeLessThanOrEqual(most);
    expect((await send('/api/v1/version', { token: await token('ada') })).status).toBe(200);
  });

  test('of many addresses together leave room for one more address', async () => {
    const { teamPort, host, send } = await serveTeam();
    const most = CONNECTION_LIMITS.anonymousPerAddress;
    const addresses = Array.from({ length: CONNECTION_LIMITS.handshakes / most + 3 }, (_, index) => `127.0.1.${index + 1}`);
    const silent = addresses.flatMap((address) => Array.from({ length: most }, () => openTcp(teamPort, host, address)));
    const openOf = (address: number): number =>
      silent.slice(address * most, (address + 1) * most).filter(({ readyState }) => readyState === 'open').length;
    const open = () => {
      const counts = addresses.map((_, index) => openOf(index));
      return { all: counts.reduce((sum, count) => sum + count, 0), everyone: Math.min(...counts) > 0 };
    };
    await expect.poll(open, EVENTUALLY).toEqual({ all: CONNECTION_LIMITS.handshakes, everyone: true });
    expect((await send('/healthz')).status).toBe(200);
  });

  test('of one address are closed when it begins too many handshakes, and other addresses are served', async () => {
    const { teamPort, host, send, authority } = await serveTeam();
    const localAddress = '127.0.0.11';
    const shake = async (): Promise<boolean> => {
      const socket = await openTls(teamPort, { host, ca: authority.ca, localAddress }).catch(() => undefined);
      socket?.on('error', () => undefined).destroy();
      return socket !== undefined;
    };
    let done = 0;
    const began = performance.now();
    for (let round = 0; round < 8; round += 1) {
      const shaken = await Promise.all(Array.from({ length: 32 }, shake));
      done += shaken.filter(Boolean).length;
    }
    const seconds = (performance.now() - began) / 1000;
    expect(done).toBeGreaterThanOrEqual(CONNECTION_LIMITS.handshakesAtOnce);
    expect(done).toBeLessThanOrEqual(
      CONNECTION_LIMITS.handshakesAtOnce + Math.ceil(seconds * CONNECTION_LIMITS.handshakesPerSecond),
    );
    expect((await send('/healthz', { tls: { localAddress: '127.0.0.12' } })).status).toBe(200);
    await expect.poll(shake, EVENTUALLY).toBe(true);
  });

  test('are closed when the handshake is slow', async () => {
    const { teamPort, host } = await serveTeam();
    const socket = openTcp(teamPort, host);
    // The start of a ClientHello that never continues.
    socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
    await readToEnd(socket);
    expect(socket.destroyed).toBe(true);
  });
});

describe('a proxy (R-TEAM-05)', () => {
  const behind = { certificate: undefined, hosts: ['memory.example'], proxies: ['127.0.0.3', '10.1.0.0/16'] };

  async function exchange(port: number, text: string, from = '127.0.0.3'): Promise<string> {
    const socket = openTcp(port, '127.0.0.2', from);
    socket.write(text);
    return readToEnd(socket);
  }

  test('is the only address that is answered', async () => {
    const { teamPort } = await serveTeam({ team: behind });
    const get = 'GET /healthz HTTP/1.1\r\nHost: memory.example\r\nConnection: close\r\n\r\n';
    expect(await exchange(teamPort, get)).toMatch(/^HTTP\/1\.1 200 /);
    for (const from of ['127.0.0.1', '127.0.0.2', '127.0.0.4']) expect(await exchange(teamPort, get, from)).toBe('');
    const claim = get.replace('\r\n\r\n', '\r\nX-Forwarded-For: 127.0.0.3\r\nForwarded: for=127.0.0.3\r\n\r\n');
    expect(await exchange(teamPort, claim, '127.0.0.4')).toBe('');
  });

  test('cannot reach admin operations or the window either', async () => {
    const { teamPort, owner } = await serveTeam({ team: behind, windowFolder: 'out/renderer' });
    const get = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: memory.example\r\nAuthorization: Bearer ${owner}\r\nX-Forwarded-For: 127.0.0.1\r\nConnection: close\r\n\r\n`;
    for (const path of ['/api/v1/tokens', '/api/v1/window', '/', '/window/events'])
      expect(await exchange(teamPort, get(path))).toMatch(/^HTTP\/1\.1 403 /);
  });

  test('can use TLS of this server too', async () => {
    const { teamPort, host, authority, token } = await serveTeam({ team: { hosts: [TEAM_NAME], proxies: ['127.0.0.3'] } });
    const options = { token: await token('ada'), headers: ['Host', TEAM_NAME] };
    const tls = { ca: authority.ca, localAddress: '127.0.0.3' };
    expect((await sendTls(host, teamPort, '/api/v1/version', { ...options, tls })).status).toBe(200);
    await expect(sendTls(host, teamPort, '/api/v1/version', { ...options, tls: { ca: authority.ca } })).rejects.toThrow(
      /disconnected|ECONNRESET/,
    );
  });

  const smuggled = 'GET /api/v1/tokens HTTP/1.1\r\nHost: memory.example\r\n\r\n';
  test.each([
    { what: 'a length and chunks', head: 'Content-Length: 6\r\nTransfer-Encoding: chunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'two lengths', head: 'Content-Length: 0\r\nContent-Length: 60', body: smuggled },
    { what: 'a list of lengths', head: 'Content-Length: 0, 60', body: smuggled },
    { what: 'a signed length', head: 'Content-Length: +0', body: smuggled },
    { what: 'an unknown coding', head: 'Transfer-Encoding: xchunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'a coding after chunks', head: 'Transfer-Encoding: chunked, identity', body: `0\r\n\r\n${smuggled}` },
    { what: 'two codings', head: 'Transfer-Encoding: chunked\r\nTransfer-Encoding: x', body: `0\r\n\r\n${smuggled}` },
    { what: 'a space before the colon', head: 'Transfer-Encoding : chunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'a folded header', head: 'X: y\r\n Transfer-Encoding: chunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'a bare line feed', head: 'X: y\nTransfer-Encoding: chunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'a bare carriage return', head: 'X: y\rTransfer-Encoding: chunked', body: `0\r\n\r\n${smuggled}` },
    { what: 'a chunk size with a sign', head: 'Transfer-Encoding: chunked', body: `-1\r\n\r\n${smuggled}` },
    { what: 'a chunk with a bare line feed', head: 'Transfer-Encoding: chunked', body: `0\n\n${smuggled}` },
    { what: 'a null byte', head: 'X: a\0b', body: smuggled },
  ])('cannot be made to smuggle a request with $what', async ({ head, body }) => {
    const { teamPort, token } = await serveTeam({ team: behind });
    const auth = `Authorization: Bearer ${await token('ada')}`;
    const text = `POST /api/v1/memory/store HTTP/1.1\r\nHost: memory.example\r\n${auth}\r\nContent-Type: application/json\r\n${head}\r\n\r\n${body}`;
    const answer = await exchange(teamPort, text);
    // One refusal, and the connection is closed before the second request is read.
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([expect.stringMatching(/ (400|415)$/)]);
  });

  test('that shares a connection between members keeps their tokens apart', async () => {
    const { teamPort, token } = await serveTeam({ team: behind });
    const [ada, bob] = [await token('ada'), await token('bob')];
    const post = (used: string, value: string): string => {
      const body = JSON.stringify({ key: 'whose', value });
      return `POST /api/v1/memory/store HTTP/1.1\r\nHost: memory.example\r\nAuthorization: Bearer ${used}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    };
    const get = (used: string, more = ''): string =>
      `GET /api/v1/memory/fact?key=whose HTTP/1.1\r\nHost: memory.example\r\nAuthorization: Bearer ${used}\r\n${more}\r\n`;
    const none = 'GET /api/v1/memory/fact?key=whose HTTP/1.1\r\nHost: memory.example\r\nConnection: close\r\n\r\n';
    const answer = await exchange(teamPort, post(ada, 'of Ada') + post(bob, 'of Bob') + get(ada) + get(bob) + none);
    expect(answer.match(/of (Ada|Bob)|HTTP\/1\.1 401/g)).toEqual(['of Ada', 'of Bob', 'HTTP/1.1 401']);
  });
});
