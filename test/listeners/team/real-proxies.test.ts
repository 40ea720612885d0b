import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority, type IssuedCertificate } from '../../support/certificates.ts';
import { EVENTUALLY, type HttpResponse } from '../../support/listener.ts';
import { openTls, readToEnd, sendTls, serveTeam, type TeamRequest } from '../../support/team.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NAME = 'memory.example';

interface ProxyFiles {
  readonly folder: string;
  /** The port of the proxy, and that of the program behind it. */
  readonly port: number;
  readonly behind: number;
  readonly certificate: IssuedCertificate;
}

interface Proxy {
  readonly program: string;
  /** First line of the example in docs/server.md. */
  readonly begins: string;
  /** Writes the configuration around the example. Returns the arguments of the program. */
  readonly configure: (example: string, files: ProxyFiles) => string[];
}

const nginx: Proxy = {
  program: '/usr/sbin/nginx',
  begins: 'server {\n  listen 443',
  configure(example, { folder, port, behind, certificate }) {
    const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
    const tls = `ssl_certificate ${certificate.certificateFile}; ssl_certificate_key ${certificate.keyFile};`;
    const server = example
      .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl; ${tls}`)
      .replace('127.0.0.1:7444', `127.0.0.1:${behind}`);
    const file = join(folder, 'nginx.conf');
    const user = process.getuid?.() === 0 ? 'user root; ' : '';
    const head = `${user}daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}`;
    writeFileSync(file, `${head} http { access_log off; ${own.join(' ')}\n${server}\n}\n`);
    return ['-p', folder, '-e', join(folder, 'error.log'), '-c', file];
  },
};

const caddy: Proxy = {
  program: '/usr/bin/caddy',
  begins: `${NAME} {`,
  configure(example, { folder, port, behind, certificate }) {
    const tls = `tls ${certificate.certificateFile} ${certificate.keyFile}`;
    const server = example
      .replace(`${NAME} {`, `${NAME}:${port} {\n\tbind 127.0.0.1\n\t${tls}`)
      .replace('127.0.0.1:7444', `127.0.0.1:${behind}`);
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${server}\n`);
    return ['run', '--adapter', 'caddyfile', '--config', file];
  },
};

/** Returns the example for a proxy in docs/server.md. */
function exampleFor({ begins }: Proxy): string {
  const [, ...blocks] = readFileSync('docs/server.md', 'utf8').split('```\n');
  const example = blocks.find((block) => block.startsWith(begins));
  if (example === undefined) throw new Error(`docs/server.md has no example that begins with ${begins}`);
  return example;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

/** Serves a memory behind a real proxy, with the configuration of docs/server.md. */
async function serveBehind(proxy: Proxy) {
  const team = { certificate: undefined, hosts: [NAME], proxies: ['127.0.0.1'] };
  const served = await serveTeam({ host: '127.0.0.1', team, windowFolder: 'out/renderer' });
  const authority = createAuthority();
  const folder = tempFolder();
  chmodSync(folder, 0o700);
  const port = await freePort();
  const certificate = authority.issue([`DNS:${NAME}`]);
  const args = proxy.configure(exampleFor(proxy), { folder, port, behind: served.teamPort, certificate });
  const child: ChildProcess = spawn(proxy.program, args, { stdio: 'ignore', env: { HOME: folder, XDG_DATA_HOME: folder } });
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  const tls = { ca: authority.ca, servername: NAME };
  const send = (path: string, { headers = [], ...request }: TeamRequest = {}): Promise<HttpResponse> =>
    sendTls('127.0.0.1', port, path, { ...request, headers: ['Host', `${NAME}:${port}`, ...headers], tls });
  await expect.poll(async () => (await send('/healthz').catch(() => undefined))?.status, EVENTUALLY).toBe(200);
  const open = () => openTls(port, { host: '127.0.0.1', ...tls });
  return { ...served, send, open, host: `${NAME}:${port}` };
}

describe.each([nginx, caddy])('$program with the configuration of docs/server.md (R-TEAM-05)', (proxy) => {
  const absent = !existsSync(proxy.program);

  test.skipIf(absent)('serves members, and neither the window nor admin operations', async () => {
    const { send, token, owner } = await serveBehind(proxy);
    const [ada, bob] = [await token('ada'), await token('bob')];
    expect((await send('/api/v1/memory/store', { token: ada, body: { key: 'a', value: 'of Ada' } })).status).toBe(200);
    expect((await send('/api/v1/memory/fact?key=a', { token: ada })).json).toMatchObject({ value: 'of Ada' });
    expect((await send('/api/v1/memory/fact?key=a', { token: bob })).status).toBe(404);
    const forged = ['X-Forwarded-For', '127.0.0.1', 'Forwarded', 'for=127.0.0.1'];
    expect((await send('/api/v1/tokens', { token: owner, headers: forged })).json.error).toBe('insufficient_scope');
    expect((await send('/', { headers: forged })).status).toBe(401);
    expect((await send('/window/open', { token: ada, body: { link: 'x' }, headers: forged })).status).toBe(404);
  });

  test.skipIf(absent)('passes events at once, and imports larger than its own limit', async () => {
    const { send, open, token, host } = await serveBehind(proxy);
    const ada = await token('ada');
    const socket = await open();
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.write(
      `GET /api/v1/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${ada}\r\nAccept: text/event-stream\r\n\r\n`,
    );
    await expect.poll(() => received, EVENTUALLY).toMatch(/^HTTP\/1\.1 200 /);
    const before = received.length;
    const value = 'x'.repeat(60_000);
    const lines = Array.from({ length: 50 }, (_, index) => JSON.stringify({ key: `k${index}`, value })).join('\n');
    const headers = ['Content-Type', 'application/x-ndjson'];
    const imported = await send('/api/v1/memory/import', { token: ada, headers, body: lines });
    expect(imported).toMatchObject({ status: 200, json: { created: 50 } });
    await expect.poll(() => received.length, EVENTUALLY).toBeGreaterThan(before);
  });

  test.skipIf(absent)('does not let a second request pass inside the first', async () => {
    const { open, token, host } = await serveBehind(proxy);
    const auth = `Authorization: Bearer ${await token('ada')}`;
    const smuggled = `GET /api/v1/version HTTP/1.1\r\nHost: ${host}\r\n${auth}\r\n\r\n`;
    for (const head of [
      'Content-Length: 6\r\nTransfer-Encoding: chunked',
      'Content-Length: 0\r\nContent-Length: 60',
      'Transfer-Encoding: xchunked',
      'Transfer-Encoding : chunked',
      'X: y\nTransfer-Encoding: chunked',
    ]) {
      const socket = await open();
      socket.write(
        `POST /api/v1/memory/store HTTP/1.1\r\nHost: ${host}\r\n${auth}\r\nContent-Type: application/json\r\nConnection: close\r\n${head}\r\n\r\n0\r\n\r\n${smuggled}`,
      );
      const answer = await readToEnd(socket);
      expect([head, answer.match(/HTTP\/1\.1 \d+/g)?.length ?? 0]).toEqual([
        head,
        expect.toSatisfy((count: number) => count <= 1),
      ]);
      expect(answer).not.toContain('"version"');
    }
  });
});
