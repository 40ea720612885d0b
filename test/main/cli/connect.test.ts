import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { ClientList } from '../../../src/contract/client.ts';
import { createServedHome } from '../../support/clients.ts';
import { A_KEY } from '../../support/store.ts';
import { runCli } from './run-cli.ts';

const CODEX = '# mine\nmodel = "gpt-5"\n';

async function aDesk() {
  const home = await createServedHome();
  const path = home.put('.codex/config.toml', CODEX);
  const { folder } = home.served;
  return {
    ...home,
    path,
    now: () => readFileSync(path, 'utf8'),
    say: (args: readonly string[], more: Parameters<typeof runCli>[1] = {}) => runCli(args, { folder, ...more }),
  };
}

test('connect shows the changes, connects and tests an agent, and disconnect reverts it (R-CONN-02, R-CONN-03)', async () => {
  const { say, path, now } = await aDesk();
  expect((await say(['connect'])).out).toMatch(
    /claude-code\s+not installed\n(?:.+\n)*codex\s+not connected\n(?:.+\n)*gemini-cli\s+not installed\n/,
  );
  const shown = await say(['connect', 'codex', '--show']);
  expect(shown).toMatchObject({ code: 0, err: '' });
  expect(shown.out).toMatch(`${path}\n    # mine\n    model = "gpt-5"\n  + \n  + [mcp_servers.helmdeck]\n  + command = "`);
  expect(now()).toBe(CODEX);
  const no = await say(['connect', 'codex'], { terminal: true, input: 'n\n' });
  expect(no.code).toBe(1);
  expect(no.err).toMatch(/\+ \[mcp_servers\.helmdeck\][^]*Connect codex\? \[y\/N\]/);
  expect(now()).toBe(CODEX);
  const yes = await say(['connect', 'codex'], { terminal: true, input: 'y\n' });
  expect(yes.out).toMatch(/^codex is connected to the memory "me"\.\nConnection tested: \d+ tools\.\n/);
  expect((await say(['connect', '--list'])).out).toMatch(
    /codex\s+connected \(stdio\), hooks wait for your review\s+used .*\s+me\n/,
  );
  expect(await say(['connect', 'codex', '--try'])).toMatchObject({ code: 0, out: expect.stringMatching(/^Connection tested/) });
  expect(await say(['disconnect', 'codex'])).toMatchObject({
    code: 0,
    out: `codex is disconnected.\n${path} was restored.\n${join(dirname(path), 'hooks.json')} was restored.\n`,
  });
  expect(now()).toBe(CODEX);
});

test('without a terminal, connect requires --yes; with --json it prints JSON', async () => {
  const { say, path, now } = await aDesk();
  expect(await say(['connect', 'codex'])).toMatchObject({ code: 2, err: expect.stringMatching(/Add --yes/) });
  expect(now()).toBe(CODEX);
  const done = await say(['connect', 'codex', '--subject', 'work', '--yes', '--json']);
  expect(JSON.parse(done.out)).toMatchObject({ client: 'codex', subject: 'work', verified: { works: true } });
  expect(JSON.parse((await say(['connect', '--json'])).out)).toMatchObject({
    clients: expect.arrayContaining([expect.objectContaining({ id: 'codex', subject: 'work' })]) as unknown[],
  });
  writeFileSync(path, `${now()}# later\n`);
  expect((await say(['disconnect', 'codex'])).out).toMatch(
    /has changed since the agent was connected, so only Helmdeck Memory.s entry was removed/,
  );
  expect(now()).toBe(`${CODEX}# later\n`);
});

test('the doctor reports a connected agent, and an entry that was removed since (R-CONN-04)', async () => {
  const { say, path } = await aDesk();
  const agents = async (): Promise<unknown[]> => {
    const { findings } = JSON.parse((await say(['doctor', '--json'])).out) as { findings: { check: string }[] };
    return findings.filter(({ check }) => check === 'agent');
  };
  expect(await agents()).toEqual([]);
  await say(['connect', 'codex', '--yes']);
  expect(await agents()).toMatchObject([
    { state: 'ok' },
    {
      state: 'warn',
      says: 'Codex does not run the hooks of Helmdeck Memory yet, because you have not reviewed them.',
      remedy: expect.stringMatching(/connect codex --trust-hooks$/),
    },
  ]);
  await say(['connect', 'codex', '--trust-hooks', '--yes']);
  expect(await agents()).toMatchObject([{ state: 'ok', says: expect.stringMatching(/^Codex is connected, last used /) }]);
  writeFileSync(path, CODEX);
  expect(await agents()).toMatchObject([
    {
      state: 'warn',
      says: expect.stringMatching(/^Codex is not connected, because it removed its entry/),
      remedy: 'Connect Codex again with: helmdeck-memory connect codex',
    },
  ]);
});

test('a token is paused and resumed (R-CONN-09)', async () => {
  const { say, row } = await aDesk();
  await say(['connect', 'codex', '--yes']);
  const id = (await row('codex')).token?.id ?? '';
  expect(await say(['token', 'pause', id])).toMatchObject({ code: 0, out: `Paused ${id}.\n` });
  expect((await say(['token', 'list'])).out).toMatch(/used \S+ \S+\s+paused$/m);
  expect((await say(['connect'])).out).toMatch(/codex\s+connected \(stdio\), paused/);
  expect(await say(['connect', 'codex', '--try'])).toMatchObject({
    code: 1,
    out: expect.stringMatching(/connection test failed.*paused/),
  });
  expect(await say(['token', 'resume', id])).toMatchObject({ code: 0, out: `Resumed ${id}.\n` });
  expect(await say(['connect', 'codex', '--try'])).toMatchObject({ code: 0 });
  expect(await say(['token', 'pause', 'nobody'])).toMatchObject({ code: 3 });
});

test('an agent can be quarantined when it is connected (R-CONN-01, R-INBOX-01)', async () => {
  const { say, row } = await aDesk();
  expect((await say(['connect', 'codex', '--quarantine', '--yes'])).out).toContain(
    'Everything that it writes waits until you accept it with: helmdeck-memory inbox',
  );
  expect(await row('codex')).toMatchObject({ token: { quarantined: true } });
  expect((await say(['connect'])).out).toMatch(/codex\s+connected \(stdio\), quarantined/);
  expect((await say(['token', 'list'])).out).toMatch(/\s+quarantined\n$/);
  await say(['connect', 'codex', '--yes']);
  expect(await row('codex')).toMatchObject({ token: { quarantined: true } });
  expect(await say(['connect', 'codex', '--quarantine', '--no-quarantine', '--yes'])).toMatchObject({ code: 2 });
  await say(['connect', 'codex', '--no-quarantine', '--yes']);
  expect((await row('codex')).token).not.toHaveProperty('quarantined');
  await say(['connect', 'codex', '--yes']);
  expect((await row('codex')).token).not.toHaveProperty('quarantined');
  expect((await say(['connect'])).out).toMatch(/codex\s+connected \(stdio\), hooks wait for your review\s/);
});

test('facts from prompts to an agent are chosen with --capture (R-INBOX-09)', async () => {
  const { say, row } = await aDesk();
  expect((await say(['connect', 'codex', '--capture', 'inbox', '--yes'])).out).toContain(
    '\nLasting statements in your prompts to codex wait until you accept them with: helmdeck-memory inbox\n',
  );
  const { token } = await row('codex');
  expect((await say(['connect'])).out).toMatch(/codex\s+connected \(stdio\), .*facts from prompts: inbox/);
  expect(await say(['connect', 'codex', '--capture', 'store', '--packs', 'none'])).toMatchObject({
    code: 0,
    out: 'codex is offered no packs.\nLasting statements in your prompts to codex are stored as facts.\n',
  });
  const { clients } = JSON.parse((await say(['connect', '--json'])).out) as ClientList;
  expect(clients.find(({ id }) => id === 'codex')).toMatchObject({ capture: true, accept: true, token: { id: token?.id } });
  expect((await say(['connect', 'codex', '--capture', 'off'])).out).toBe('No facts are made from your prompts to codex.\n');
  expect((await say(['connect'])).out).not.toContain('facts from prompts');
  expect(await say(['connect', 'codex', '--capture', 'constructor'])).toMatchObject({ code: 2 });
});

test('the packs of an agent are chosen with --packs (R-CONN-14)', async () => {
  const { say, row } = await aDesk();
  const none = await say(['connect', 'codex', '--packs', 'none', '--yes']);
  expect(none.out).toMatch(
    /^codex is connected to the memory "me"\.\nConnection tested: 6 tools\.\ncodex is offered no packs\.\n/,
  );
  const { token } = await row('codex');
  expect((await say(['connect'])).out).toMatch(/codex\s+connected \(stdio\), packs: none/);
  expect(await say(['connect', 'codex', '--packs', 'helmdeck.route'])).toMatchObject({
    code: 0,
    out: 'codex is offered helmdeck.route.\n',
  });
  expect((await say(['connect', 'codex', '--try'])).out).toBe('Connection tested: 8 tools.\n');
  expect(await say(['connect', 'codex', '--packs', 'helmdeck.rout'])).toMatchObject({ code: 3 });
  expect((await say(['connect', 'codex', '--packs', 'all'])).out).toBe('codex is offered all packs.\n');
  expect((await say(['connect'])).out).not.toMatch(/codex.*packs/);
  // An agent that is not in the list, but has a token.
  await say(['token', 'mint', 'mine', '--client', 'My Agent']);
  expect((await say(['connect', 'My Agent', '--packs', 'none'])).out).toBe('My Agent is offered no packs.\n');
  expect((await say(['connect', 'Another', '--packs', 'none', '--yes'])).code).not.toBe(0);
  // The agent stays connected with the same token.
  expect((await row('codex')).token?.id).toBe(token?.id);
});

test('a refusal says why, and an unknown agent is not found', async () => {
  const { say, path, now } = await aDesk();
  expect(await say(['connect', 'nobody', '--yes'])).toMatchObject({
    code: 3,
    err: expect.stringMatching(/no client with this id/),
  });
  expect(await say(['connect', 'claude-code', '--yes'])).toMatchObject({
    code: 3,
    err: expect.stringMatching(/not found on this machine/),
  });
  expect(await say(['disconnect', 'codex'])).toMatchObject({ code: 3 });
  writeFileSync(path, '[broken');
  expect(await say(['connect', 'codex', '--yes'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/not valid TOML \(line 1\)/),
  });
  expect(now()).toBe('[broken');
});

test('connect also works while the program is not running, and says to start it', async () => {
  const { home, put, path } = await aDesk();
  const folder = join(home, 'data');
  const environment = { HELMDECK_MEMORY_KEY: A_KEY, HOME: home, PATH: join(home, 'bin') };
  const done = await runCli(['connect', 'codex', '--yes'], { folder, environment });
  expect(done).toMatchObject({
    code: 0,
    out: expect.stringMatching(/connection test failed\. Helmdeck Memory is not running/),
  });
  expect(readFileSync(path, 'utf8')).toMatch(JSON.stringify(folder));
  expect((await runCli(['connect'], { folder, environment })).out).toMatch(
    /codex\s+connected \(stdio\), hooks wait for your review\s+never used\s+me/,
  );
  expect((await runCli(['disconnect', 'codex'], { folder, environment })).code).toBe(0);
  expect(readFileSync(path, 'utf8')).toBe(CODEX);
  // Without a key, the connection would not be saved.
  put('.codex/config.toml', CODEX);
  expect(await runCli(['connect', 'codex', '--yes'], { folder: join(home, 'other'), environment: { HOME: home } })).toMatchObject(
    {
      code: 4,
    },
  );
  expect(readFileSync(path, 'utf8')).toBe(CODEX);
});
