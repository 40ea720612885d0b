import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type AddressInfo, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../support/certificates.ts';
import { createClientHome } from '../../support/clients.ts';
import { serveTeam } from '../../support/team.ts';
import { filesBelow } from '../../support/temp-folder.ts';
import { runCli } from '../cli/run-cli.ts';

const CODEX = '# mine\nmodel = "gpt-5"\n';
const HOST = '127.0.0.2';

/** A member's machine with Codex and without a memory, and a server with TLS. */
async function aMember() {
  const desk = createClientHome();
  const config = desk.put('.codex/config.toml', CODEX);
  const folder = join(desk.home, 'data');
  const team = await serveTeam();
  const url = `https://${HOST}:${team.teamPort}`;
  const token = await team.token('ada', ['memory:read', 'memory:write'], 'codex');
  const say = (args: readonly string[], more: Parameters<typeof runCli>[1] = {}) =>
    runCli(args, {
      folder,
      ...more,
      environment: { HOME: desk.home, PATH: join(desk.home, 'bin'), HELMDECK_DATA_DIR: folder, ...more.environment },
    });
  const connect = (more: readonly string[] = [], options: Parameters<typeof runCli>[1] = {}) =>
    say(['connect', 'codex', '--server', url, '--ca', team.authority.caFile, '--yes', ...more], { input: token, ...options });
  const nothingWritten = (): void => {
    expect(readFileSync(config, 'utf8')).toBe(CODEX);
    expect(existsSync(folder)).toBe(false);
  };
  return { ...desk, config, folder, team, url, token, say, connect, nothingWritten };
}

describe('connecting an agent to a server (R-TEAM-08)', () => {
  test('shows the change, stores address and token in private files, and tests the connection', async () => {
    const { say, connect, config, folder, team, url, token, nothingWritten } = await aMember();
    const shown = await say(['connect', 'codex', '--server', url, '--show']);
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toMatch(`${config}\n    # mine\n    model = "gpt-5"\n  + \n  + [mcp_servers.helmdeck]`);
    nothingWritten();
    const done = await connect();
    expect(done.err).toBe('');
    expect(done.out).toMatch(
      `codex is connected to the memory "ada" at ${url}.\nConnection tested: 6 tools.\nThe token expires on `,
    );
    for (const name of ['codex.token', 'codex.server.json', 'codex.json'])
      expect(statSync(join(folder, 'clients', name)).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const text = readFileSync(config, 'utf8');
    expect(text).not.toContain(token);
    expect(text).not.toContain(url);
    const others = filesBelow(folder).filter(({ path }) => !path.endsWith('codex.token'));
    for (const { path } of others) expect(readFileSync(path, 'utf8')).not.toContain(token);
    const { tokens } = await team.tokens.list();
    expect(tokens).toMatchObject([{ subject: 'ada', last_used_at: expect.any(String) }]);
  });

  test('is tested, listed and undone without a memory on this machine (R-TEAM-11)', async () => {
    const { say, connect, config, folder, url } = await aMember();
    await connect();
    expect(await say(['connect', 'codex', '--try'])).toMatchObject({ code: 0, out: 'Connection tested: 6 tools.\n' });
    expect((await say(['connect'])).out).toMatch(
      new RegExp(`codex +connected \\(stdio\\) to ${url}, hooks wait for your review +ada`),
    );
    const gone = await say(['disconnect', 'codex']);
    expect(gone).toMatchObject({ code: 0, err: '' });
    expect(gone.out).toBe(
      `codex is disconnected.\n${config} was restored.\n${join(dirname(config), 'hooks.json')} was restored.\nThe token is still valid on ${url}. If you no longer need it, ask the admin of the server to revoke it.\n`,
    );
    expect(readFileSync(config, 'utf8')).toBe(CODEX);
    expect(readdirSync(join(folder, 'clients'))).toEqual([]);
  });

  test('is checked by the doctor, with the reason if it does not work', async () => {
    const { say, connect, folder, team, url } = await aMember();
    await connect();
    const about = async (check: string): Promise<unknown> => {
      const { findings } = JSON.parse((await say(['doctor', '--json'])).out) as { findings: { check: string }[] };
      return findings.filter((finding) => finding.check === check);
    };
    expect(await about('memory')).toMatchObject([
      { state: 'ok', says: 'There is no memory on this machine, and agents use a server.' },
    ]);
    expect(await about('agent')).toMatchObject([
      { state: 'ok', says: `Codex is connected to ${url}.` },
      { state: 'warn', says: expect.stringMatching(/not reviewed/), remedy: expect.stringMatching(/codex --trust-hooks/) },
    ]);
    await team.listener.close();
    expect(await about('agent')).toMatchObject([{ state: 'warn', says: expect.stringMatching(/cannot be reached/) }]);
    const expired = `e30.${Buffer.from(JSON.stringify({ sub: 'ada', exp: 1 })).toString('base64url')}.x`;
    writeFileSync(join(folder, 'clients/codex.token'), expired, { mode: 0o600 });
    expect((await say(['connect'])).out).toMatch(/codex +has no token; connect it again +ada/);
    expect(await about('agent')).toMatchObject([
      { state: 'warn', remedy: `Connect Codex again with: helmdeck-memory connect codex --server ${url}` },
    ]);
  });

  test('trusts a self-signed certificate that is named with --ca', async () => {
    const { say, put, token } = await aMember();
    const key = put('own.key', '', 0o600);
    const cert = put('own.pem', '');
    const args = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '3',
      '-subj',
      '/CN=x',
    ];
    const own = [
      '-addext',
      `subjectAltName=IP:${HOST}`,
      '-addext',
      'basicConstraints=critical,CA:false',
      '-keyout',
      key,
      '-out',
      cert,
    ];
    execFileSync('openssl', [...args, ...own], { stdio: 'pipe' });
    const answer = JSON.stringify({ version: '0.0.9' });
    const url = await listening(
      createHttps({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) => response.end(answer)),
    );
    const { err } = await say(['connect', 'codex', '--server', url, '--ca', cert, '--yes'], { input: token });
    expect(err).toMatch(/too old/);
  });

  test('reads the token from a terminal without echo, or from a private file, and never from an argument', async () => {
    const { connect, say, token, home, put } = await aMember();
    const typed = await connect([], { terminal: true, input: `${token}\n` });
    expect(typed.code).toBe(0);
    expect(typed.err).toMatch(/Token \(hidden\): /);
    expect(typed.err + typed.out).not.toContain(token);
    const file = put('token', `${token}\n`, 0o600);
    expect(await connect(['--token-file', file], { input: '' })).toMatchObject({ code: 0 });
    const open = put('open-token', token, 0o644);
    const refused = await connect(['--token-file', open], { input: '' });
    expect(refused).toMatchObject({
      code: 78,
      err: expect.stringMatching(/Other users have access to the file that --token-file names/),
    });
    expect(await connect(['--token-file', join(home, 'none')])).toMatchObject({
      code: 78,
      err: expect.stringMatching(/cannot be read/),
    });
    expect(await connect([], { input: '' })).toMatchObject({ code: 2, err: expect.stringMatching(/^There is no token/) });
    expect((await say(['help', 'connect'])).out).not.toMatch(/--token </);
  });

  test('asks before it writes, and needs --yes without a terminal', async () => {
    const { say, url, nothingWritten } = await aMember();
    expect(await say(['connect', 'codex', '--server', url])).toMatchObject({ code: 2, err: expect.stringMatching(/Add --yes/) });
    const no = await say(['connect', 'codex', '--server', url], { terminal: true, input: 'n\n' });
    expect(no.code).toBe(1);
    expect(no.err).toContain(`Connect codex to ${url}? [y/N]`);
    nothingWritten();
  });

  test('says which name the writes get if the token names another client', async () => {
    const { connect, team } = await aMember();
    const other = await team.token('ada', ['memory:read'], 'laptop');
    expect((await connect([], { input: other })).out).toContain(
      'The token names the client "laptop", so everything that codex writes has this name.',
    );
  });

  test('replaces an earlier token of the same server', async () => {
    const { connect, team, folder } = await aMember();
    await connect();
    const other = await team.token('bob', ['memory:read', 'memory:write'], 'codex');
    expect((await connect([], { input: other })).out).toMatch(/^codex is connected to the memory "bob"/);
    expect(readFileSync(join(folder, 'clients/codex.token'), 'utf8').trim()).toBe(other);
  });

  test('is refused while the agent is connected to the memory on this machine, and the reverse (R-TEAM-11)', async () => {
    const { connect, say, config, folder } = await aMember();
    const key = { environment: { HELMDECK_MEMORY_KEY: 'ab'.repeat(32) } };
    mkdirSync(folder, { mode: 0o700 });
    expect((await say(['connect', 'codex', '--yes'], key)).code).toBe(0);
    const before = readFileSync(config, 'utf8');
    const token = readFileSync(join(folder, 'clients/codex.token'), 'utf8');
    expect(await connect()).toMatchObject({
      code: 1,
      err: 'Codex is connected to the memory on this machine. Disconnect it first with: helmdeck-memory disconnect codex\n',
    });
    expect([readFileSync(config, 'utf8'), readFileSync(join(folder, 'clients/codex.token'), 'utf8')]).toEqual([before, token]);
    await say(['disconnect', 'codex'], key);
    expect((await connect()).code).toBe(0);
    expect(await say(['connect', 'codex', '--yes'], key)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/is connected to the server https:.*Disconnect it first/),
    });
    expect((await say(['token', 'list'], key)).out).toBe('');
  });

  test('is refused while the agent is connected to another server, whose token would stay valid unnoticed (R-TEAM-11)', async () => {
    const { connect, say, folder, url } = await aMember();
    expect((await connect()).code).toBe(0);
    const files = (): string[] => filesBelow(folder).map(({ path }) => `${path} ${readFileSync(path, 'utf8')}`);
    const before = files();
    const other = await serveTeam();
    const token = await other.token('ada', ['memory:read', 'memory:write'], 'codex');
    const otherUrl = `https://${HOST}:${other.teamPort}`;
    const connectOther = () =>
      say(['connect', 'codex', '--server', otherUrl, '--ca', other.authority.caFile, '--yes'], { input: token });
    expect(await connectOther()).toMatchObject({
      code: 1,
      err: `Codex is connected to the server ${url}. Disconnect it first with: helmdeck-memory disconnect codex\n`,
    });
    expect(files()).toEqual(before);
    expect((await say(['disconnect', 'codex'])).out).toMatch(/still valid/);
    expect((await connectOther()).code).toBe(0);
  });

  test('cannot be combined with options that the server decides', async () => {
    const { say, url } = await aMember();
    for (const more of [['--subject', 'bob'], ['--packs', 'none'], ['--try'], ['--list']])
      expect((await say(['connect', 'codex', '--server', url, ...more])).code).toBe(2);
    expect((await say(['connect', '--server', url])).code).toBe(2);
    expect((await say(['connect', 'codex', '--ca', '/x'])).code).toBe(2);
    expect(await say(['connect', 'openclaw-embeddings', '--server', url, '--yes'], { input: 'x' })).toMatchObject({
      code: expect.not.stringMatching(/^0$/),
    });
  });
});

async function listening(server: Server): Promise<string> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  return `https://${HOST}:${(server.address() as AddressInfo).port}`;
}

describe('a server that cannot be used is refused with one sentence, and nothing is written (R-TEAM-09)', () => {
  const sentence = /^[A-Z][^\n]+\.\n$/;

  test.each([
    { address: 'http://memory.test', why: 'without TLS' },
    { address: 'memory.test:7443', why: 'without a scheme' },
    { address: 'https://memory.test/path', why: 'with a path' },
    { address: 'https://user:secret@memory.test', why: 'with a password' },
    { address: 'https://', why: 'without a name' },
  ])('because of an address $why', async ({ address }) => {
    const { say, nothingWritten } = await aMember();
    const { code, err } = await say(['connect', 'codex', '--server', address, '--yes'], { input: 'x' });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^The address of the server must start with https:/) });
    expect(err).not.toContain('secret');
    nothingWritten();
  });

  test('because its authority is unknown', async () => {
    const { say, url, token, nothingWritten } = await aMember();
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const { code, err } = await say(['connect', 'codex', '--server', url, '--yes'], { input: token, environment });
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^The certificate of the server at .* cannot be trusted \(its authority is unknown on this machine\)/,
      ),
    });
    expect(err).toMatch(sentence);
    nothingWritten();
  });

  test('because its certificate expired, belongs to another name, or is only for another address', async () => {
    const { say, token, nothingWritten } = await aMember();
    const authority = createAuthority();
    const cases = [
      { issued: authority.issue([`IP:${HOST}`], { from: -9, until: -2 }), says: /it has expired/ },
      { issued: authority.issue([`IP:${HOST}`], { from: 2, until: 9 }), says: /it is not valid yet/ },
      { issued: authority.issue(['DNS:other.test']), says: /it belongs to another name/ },
      { issued: authority.issue([`IP:${HOST}`], { withoutAlternativeNames: true }), says: /it belongs to another name/ },
    ];
    for (const { issued, says } of cases) {
      let requests = 0;
      const files = { cert: readFileSync(issued.certificateFile), key: readFileSync(issued.keyFile) };
      const url = await listening(createHttps(files, () => (requests += 1)));
      const { code, err } = await say(['connect', 'codex', '--server', url, '--ca', authority.caFile, '--yes'], { input: token });
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(says) });
      expect(err).toMatch(sentence);
      expect(requests).toBe(0);
    }
    nothingWritten();
  });

  test('because it cannot be reached, does not speak TLS, or closes the connection', async () => {
    const { say, token, nothingWritten } = await aMember();
    const closing = createTcp((socket) => socket.destroy());
    const plain = createTcp((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const urls = [
      { url: 'https://127.0.0.2:1', says: /cannot be reached \(the connection was refused\)/ },
      { url: 'https://nowhere.invalid', says: /cannot be reached \((the name is unknown|the name cannot be resolved now)\)/ },
      { url: await listening(closing), says: /cannot be reached \(the connection was closed\)/ },
      { url: await listening(plain), says: /cannot be reached \(it does not speak TLS\)/ },
    ];
    for (const { url, says } of urls) {
      const { code, err } = await say(['connect', 'codex', '--server', url, '--yes'], { input: token });
      expect({ url, code, err }).toEqual({ url, code: 5, err: expect.stringMatching(says) });
      expect(err).toMatch(sentence);
    }
    nothingWritten();
  });

  test('because it refuses the token', async () => {
    const { connect, team, token, nothingWritten } = await aMember();
    const admin = await team.token('me', ['admin']);
    const [head, claims] = token.split('.');
    const forged = `${head}.${claims}.${'A'.repeat(43)}`;
    expect(await connect([], { input: forged })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^The server at .* refused the request: /),
    });
    expect(await connect([], { input: admin })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/works only on the machine of the server/),
    });
    const { tokens } = await team.tokens.list();
    await team.tokens.revoke({ id: tokens.find(({ subject }) => subject === 'ada')?.id ?? '', unrecorded: false });
    const revoked = await connect();
    expect(revoked).toMatchObject({ code: 1, err: expect.stringMatching(/revoked/) });
    expect(revoked.err).toMatch(sentence);
    expect(await connect([], { input: 'not a token' })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^This is not a token of Helmdeck Memory/),
    });
    nothingWritten();
  });

  test('because it is another program, or too old', async () => {
    const { say, token, nothingWritten } = await aMember();
    const authority = createAuthority();
    const issued = authority.issue([`IP:${HOST}`]);
    const files = { cert: readFileSync(issued.certificateFile), key: readFileSync(issued.keyFile) };
    const answers = [
      { status: 200, text: JSON.stringify({ version: '0.0.9' }), says: /runs Helmdeck Memory 0\.0\.9, which is too old/ },
      { status: 200, text: JSON.stringify({ version: 'x\u001b[31m' }), says: /is not Helmdeck Memory/ },
      { status: 200, text: '<html>', says: /is not Helmdeck Memory/ },
      { status: 404, text: '', says: /is not Helmdeck Memory/ },
      { status: 302, text: '{}', says: /is not Helmdeck Memory/ },
      { status: 200, text: 'x'.repeat(200_000), says: /is not Helmdeck Memory/ },
      { status: 403, text: JSON.stringify({ error: 'x', message: 'a\nb\u001b[31m.' }), says: /refused the request: a b/ },
    ];
    for (const { status, text, says } of answers) {
      const url = await listening(
        createHttps(files, (_request, response) => response.writeHead(status, { Location: '/' }).end(text)),
      );
      const { code, err } = await say(['connect', 'codex', '--server', url, '--ca', authority.caFile, '--yes'], { input: token });
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(says) });
      expect(err).toMatch(sentence);
      expect(err).not.toContain('\u001b');
    }
    nothingWritten();
  });

  test('because of the file of --ca', async () => {
    const { say, url, home, put, team } = await aMember();
    writeFileSync(join(home, 'key.pem'), readFileSync(team.files.keyFile));
    const files = ['/nowhere', put('text.pem', 'hello'), join(home, 'key.pem'), team.files.certificateFile];
    for (const file of files) {
      const { code, err } = await say(['connect', 'codex', '--server', url, '--ca', file, '--yes'], { input: 'x' });
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^The file of --ca /) });
    }
  });
});
