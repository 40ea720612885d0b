import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { INITIALIZE_PARAMS, startBridge } from '../../integrations/bridge.ts';
import { toolResultOf as toolSaid } from '../../listeners/mcp/mcp-client.ts';
import { createAuthority } from '../../support/certificates.ts';
import { createClientHome } from '../../support/clients.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from '../cli/run-cli.ts';

/** Starts the real program as a server with TLS. Returns its folder and port. */
async function aServer(tls: Record<string, string>) {
  const folder = join(tempFolder(), 'data');
  const child = spawn(process.execPath, ['bin/helmdeck-memory.js', 'serve'], {
    env: {
      PATH: process.env['PATH'],
      HOME: tempFolder(),
      HELMDECK_DATA_DIR: folder,
      HELMDECK_MEMORY_KEY: A_KEY,
      HELMDECK_ADDR: '127.0.0.1:0',
      HELMDECK_SERVER_ADDR: '127.0.0.2:0',
      ...tls,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  while (!output.includes('is running at')) await once(child.stdout, 'data');
  return { folder, port: Number(/Other machines connect at https:\/\/127\.0\.0\.2:(\d+)\./.exec(output)?.[1]) };
}

test('two members use one server, each with their own memory, from tokens that the admin mints (R-TEAM-07, R-TEAM-08)', async () => {
  const authority = createAuthority();
  const issued = authority.issue(['IP:127.0.0.2']);
  const server = await aServer({ HELMDECK_TLS_CERT_FILE: issued.certificateFile, HELMDECK_TLS_KEY_FILE: issued.keyFile });
  const admin = (...args: string[]) => runCli(args, { folder: server.folder });
  const url = `https://127.0.0.2:${server.port}`;
  const aMember = async (subject: string) => {
    const minted = await admin('token', 'mint', `${subject}, Codex`, '--subject', subject, '--client', 'codex', '--days', '30');
    const desk = createClientHome();
    desk.put('.codex/config.toml', '');
    const folder = join(desk.home, 'data');
    const environment = { HOME: desk.home, PATH: join(desk.home, 'bin') };
    const args = ['connect', 'codex', '--server', url, '--ca', authority.caFile, '--yes'];
    const done = await runCli(args, { folder, environment, input: minted.out });
    expect(done.out).toMatch(`codex is connected to the memory "${subject}" at ${url}.\nConnection tested: `);
    const bridge = startBridge({ HELMDECK_DATA_DIR: folder }, '--client', 'codex');
    await bridge.request('initialize', INITIALIZE_PARAMS);
    return async (name: string, input: object): Promise<unknown> =>
      toolSaid((await bridge.request('tools/call', { name, arguments: input })).result);
  };
  const [ada, bob] = [await aMember('ada'), await aMember('bob')];
  expect(await ada('memory_store', { key: 'plan', value: 'of Ada' })).toMatchObject({ status: 'created' });
  expect(await bob('memory_recall', { key: 'plan' })).toMatchObject({ error: 'not_found' });
  expect(await bob('memory_store', { key: 'plan', value: 'of Bob' })).toMatchObject({ status: 'created' });
  expect(await bob('memory_forget', { scope: 'all' })).toMatchObject({ deleted: expect.any(Number) });
  expect(await ada('memory_recall', { key: 'plan' })).toMatchObject({ value: 'of Ada', client: 'codex' });
  expect((await admin('status')).out).toMatch(`other machines connect at ${url}`);
  expect(await admin('token', 'revoke', '--subject', 'bob')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Revoked \w+, bob, Codex\.\n$/),
  });
  expect(await admin('token', 'revoke', '--subject', 'bob')).toMatchObject({ code: 3 });
  expect(await admin('token', 'revoke')).toMatchObject({ code: 2 });
  expect(await bob('memory_recall', { key: 'plan' })).toMatchObject({ error: 'invalid_token' });
  expect(await ada('memory_recall', { key: 'plan' })).toMatchObject({ value: 'of Ada' });
});
