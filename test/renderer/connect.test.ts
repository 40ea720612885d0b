import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bundle } from '../../build/tasks/bundle.ts';
import { runCli } from '../main/cli/run-cli.ts';
import { createClientHome } from '../support/clients.ts';
import { manualClock, HOUR, SECOND } from '../support/clock.ts';
import { sendRequest } from '../support/listener.ts';
import { theOwner } from '../support/memory.ts';
import { serveTeam } from '../support/team.ts';
import { accessibilityViolations, openWindow, type WindowOptions } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

const opened = async (over: WindowOptions = {}) => {
  const all = await openWindow({ clock: manualClock(), firstRun: true, ...over });
  await goTo(all.page, 'Connect');
  const { page } = all;
  return { ...all, tokens: page.getByRole('list', { name: 'Tokens' }).getByRole('listitem') };
};

describe('tokens', () => {
  test('are listed with program, memory and dates', async () => {
    const { page, served, tokens, advance: pass } = await opened();
    await page.getByText('No tokens yet.').waitFor();
    const token = await served.token('me', ['memory:read'], 'claude-code');
    await pass(HOUR);
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await expect.poll(() => tokens.allInnerTexts()).toHaveLength(1);
    expect(await tokens.first().innerText()).toMatch(
      /a test claude-code, memory of me\s+Created 3 June 2026 at 14:02\. Never used\. Expires 4 June 2026 at 14:02\./,
    );
    await sendRequest(served.url, '/api/v1/status', { token });
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await expect.poll(() => tokens.first().innerText()).toMatch('Last used 3 June 2026 at 15:02.');
    for (let part = 0; part < 3; part += 1) {
      await pass(8 * HOUR);
      await goTo(page, 'Settings');
      await goTo(page, 'Connect');
    }
    await expect.poll(() => tokens.first().innerText()).toMatch('Expired.');
  });

  test('show their last use without a reload while the owner is present', async () => {
    const { page, served, tokens, advance: pass } = await opened();
    const token = await served.token('me', ['memory:read'], 'claude-code');
    await page.mouse.move(10, 10);
    await pass(6 * SECOND);
    await expect.poll(() => tokens.count()).toBe(1);
    await sendRequest(served.url, '/api/v1/status', { token });
    await page.mouse.move(20, 20);
    await pass(6 * SECOND);
    await expect.poll(() => tokens.first().innerText()).toMatch('Last used');
  });

  test('are created for one program and shown once (R-WIN-21)', async () => {
    const { page, served, tokens, as } = await opened();
    await page.getByRole('button', { name: 'Create a token…' }).click();
    const form = page.getByRole('dialog', { name: 'Create a token' });
    await form.getByRole('textbox', { name: 'Program' }).fill('openclaw');
    await form.getByRole('checkbox', { name: 'Write and forget' }).uncheck();
    await form.getByRole('spinbutton').fill('30');
    await form.getByRole('button', { name: 'Create' }).click();
    const shown = page.getByRole('dialog', { name: 'The token of openclaw' });
    const token = (await shown.locator('pre').textContent()) ?? '';
    await shown.getByRole('button', { name: 'Copy the token' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(token);
    await shown.getByRole('button', { name: 'Done' }).click();
    await expect.poll(() => page.content()).not.toMatch(token);
    expect((await sendRequest(served.url, '/api/v1/status', { token })).status).toBe(200);
    expect((await sendRequest(served.url, '/api/v1/memory/store', { token, body: { key: 'k', value: 'v' } })).status).toBe(403);
    const [made] = (await as({ scopes: new Set(['admin']) })('tokens', {})).tokens;
    expect(made).toMatchObject({ name: 'openclaw', client: 'openclaw', subject: 'me', scopes: ['memory:read', 'packs:run'] });
    expect(made?.expires_at).toBe('2026-07-03T14:02:00.000Z');
    await expect.poll(() => tokens.count()).toBe(1);
  });

  test('of a program that nobody knows start in quarantine, unless the owner decides otherwise (R-WIN-55)', async () => {
    const { page, tokens } = await opened();
    await page.getByRole('button', { name: 'Create a token…' }).click();
    const form = page.getByRole('dialog', { name: 'Create a token' });
    const quarantine = form.getByRole('checkbox', { name: 'Keep the program in quarantine' });
    await form.getByRole('textbox', { name: 'Program' }).fill('codex');
    expect(await quarantine.isChecked()).toBe(false);
    await form.getByRole('textbox', { name: 'Program' }).fill('stranger');
    expect(await quarantine.isChecked()).toBe(true);
    await form.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('dialog', { name: 'The token of stranger' }).getByRole('button', { name: 'Done' }).click();
    await tokens.getByText('In quarantine.').waitFor();
    await page.getByRole('button', { name: 'Create a token…' }).click();
    await form.getByRole('textbox', { name: 'Program' }).fill('my-tool');
    await quarantine.uncheck();
    await form.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('dialog', { name: 'The token of my-tool' }).getByRole('button', { name: 'Done' }).click();
    await expect.poll(() => tokens.count()).toBe(2);
    expect(await tokens.getByText('In quarantine.').count()).toBe(1);
  });

  test('that cannot be created show the reason and keep the form', async () => {
    const { page } = await opened();
    await page.getByRole('button', { name: 'Create a token…' }).click();
    const form = page.getByRole('dialog', { name: 'Create a token' });
    await form.getByRole('textbox', { name: 'Program' }).fill('<b>');
    await form.getByRole('button', { name: 'Create' }).click();
    await form
      .getByRole('alert')
      .getByText(/^Program must have 1 to 64 letters/)
      .waitFor();
    expect(await form.getByRole('textbox', { name: 'Program' }).inputValue()).toBe('<b>');
  });

  test('are revoked after a confirmation (R-WIN-20)', async () => {
    const { page, served, tokens } = await opened();
    const token = await served.token('me', ['memory:read'], 'claude-code');
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await page.getByRole('button', { name: 'Revoke a test' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke the token a test?' });
    await dialog.getByText('The facts that claude-code wrote stay.').waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect((await sendRequest(served.url, '/api/v1/status', { token })).status).toBe(200);
    await page.getByRole('button', { name: 'Revoke a test' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await toast(page).getByText('a test no longer has access.').waitFor();
    expect((await sendRequest(served.url, '/api/v1/status', { token })).status).toBe(401);
    await expect.poll(() => tokens.count()).toBe(0);
  });
});

test('the commands for each agent are those in docs/connect.md, and Copy copies them unchanged', async () => {
  const { page } = await opened();
  const blocks = await page.locator('.copyable pre').allTextContents();
  const guide = readFileSync('docs/connect.md', 'utf8');
  expect(blocks).toHaveLength(4);
  for (const block of blocks.slice(0, 3)) expect(guide).toMatch(`\n${block}\n`);
  await page.getByRole('button', { name: 'Copy the lines for Codex' }).click();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(blocks[1]);
});

describe('the agents on this computer', () => {
  const CODEX = '# mine\nmodel = "gpt-5"\n';

  const withCodex = async (over: WindowOptions = {}) => {
    const { clients, put } = createClientHome();
    const path = put('.codex/config.toml', CODEX);
    const all = await openWindow({ clients, firstRun: true, ...over });
    const { page } = all;
    await goTo(page, 'Connect');
    const line = page.getByRole('list', { name: 'Agents' }).getByRole('listitem');
    await line.first().waitFor();
    const connect = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Connect Codex' }).click();
      await page.getByRole('dialog', { name: 'Connect Codex' }).getByRole('button', { name: 'Connect', exact: true }).click();
      await page.getByRole('dialog', { name: 'Codex is connected' }).getByText('tested:').waitFor();
      await page.keyboard.press('Enter');
    };
    return { ...all, path, line, connect, now: () => readFileSync(path, 'utf8') };
  };

  test('are connected by keyboard after a preview, tested and disconnected (R-CONN-11, R-CONN-02)', async () => {
    const { page, line, path, now } = await withCodex();
    expect(await line.allInnerTexts()).toEqual([expect.stringMatching(/^Codex\s+Not connected\./)]);
    await page.getByText(/^Not found: .*Claude Code.*Gemini CLI/).waitFor();
    await page.getByRole('button', { name: 'Connect Codex' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Connect Codex' });
    await dialog.getByText(path).waitFor();
    expect(await dialog.locator('ins').allTextContents()).toContain('+ [mcp_servers.helmdeck]\n');
    expect(await dialog.locator('del').count()).toBe(0);
    expect(now()).toBe(CODEX);
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole('textbox', { name: 'Memory' }).focus();
    await page.keyboard.press('Enter');
    const done = page.getByRole('dialog', { name: 'Codex is connected' });
    await done.getByText(/^Connection to the memory of me tested: \d+ tools/).waitFor();
    await page.keyboard.press('Enter');
    await line.getByText(/Connected over stdio to the memory of me\. Last used/).waitFor();
    expect(now()).toContain('[mcp_servers.helmdeck]');
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Test Codex' }).click();
    await toast(page).getByText('Connection to Codex tested').waitFor();
    await page.getByRole('button', { name: 'Disconnect Codex' }).click();
    await page.getByRole('dialog', { name: 'Disconnect Codex?' }).getByRole('button', { name: 'Disconnect' }).click();
    await toast(page).getByText('its configuration is restored').waitFor();
    expect(now()).toBe(CODEX);
    await line.getByText('Not connected.').waitFor();
  });

  test('that use a server on another machine show its address, and are tested and disconnected (R-TEAM-11)', async () => {
    const team = await serveTeam();
    const url = `https://127.0.0.2:${team.teamPort}`;
    const { clients, put, home } = createClientHome();
    const path = put('.codex/config.toml', CODEX);
    const { page, served } = await openWindow({ clients, firstRun: true });
    const { folder } = served;
    const environment = { HOME: home, PATH: `${home}/bin`, HELMDECK_DATA_DIR: folder };
    const input = await team.token('ada', ['memory:read', 'memory:write'], 'codex');
    const args = ['connect', 'codex', '--server', url, '--ca', team.authority.caFile, '--yes'];
    expect(await runCli(args, { folder, environment, input })).toMatchObject({ code: 0 });
    await goTo(page, 'Connect');
    const line = page.getByRole('list', { name: 'Agents' }).getByRole('listitem');
    await line.getByText(`Connected over stdio to the memory of ada on ${url}.`).waitFor();
    expect(await line.getByRole('button').allInnerTexts()).toEqual(['Test', 'Disconnect…']);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Test Codex' }).click();
    await toast(page).getByText('Connection to Codex tested: 6 tools.').waitFor();
    await team.listener.close();
    await page.getByRole('button', { name: 'Test Codex' }).click();
    await toast(page)
      .getByText(/^Codex can't connect\. .*cannot be reached/)
      .waitFor();
    await page.getByRole('button', { name: 'Disconnect Codex' }).click();
    const dialog = page.getByRole('dialog', { name: 'Disconnect Codex?' });
    await dialog.getByText(`but it stays valid on ${url} until its admin revokes it.`).waitFor();
    await dialog.getByRole('button', { name: 'Disconnect' }).click();
    await toast(page).getByText('its configuration is restored').waitFor();
    expect(readFileSync(path, 'utf8')).toBe(CODEX);
  });

  test('show a link for another profile if they support one (R-BUNDLE-06)', async () => {
    const { clients, put } = createClientHome();
    put('.cursor/mcp.json', '{}');
    const { page } = await openWindow({ clients, firstRun: true });
    await goTo(page, 'Connect');
    await page.getByRole('button', { name: 'Connect Cursor' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Cursor' });
    await dialog.getByText('For another profile of Cursor').click();
    expect(await dialog.locator('.copyable pre').textContent()).toMatch(/^cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?/);
    expect(await dialog.getByRole('link').count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
  });

  test('are offered only the hooks that they have (R-WIN-55)', async () => {
    const { clients, put } = createClientHome();
    put('.cursor/mcp.json', '{}');
    const { page } = await openWindow({ clients, firstRun: true });
    await goTo(page, 'Connect');
    await page.getByRole('button', { name: 'Connect Cursor' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Cursor' });
    await dialog.locator('ins').first().waitFor();
    await dialog.getByRole('checkbox', { name: 'Keep Cursor in quarantine' }).waitFor();
    await dialog.getByText('sessionStart').first().waitFor();
    await dialog.getByRole('checkbox', { name: 'At the start of a session' }).uncheck();
    // Cursor has no hook for prompts, so prompts cannot propose facts either.
    expect(await dialog.getByRole('checkbox').count()).toBe(2);
    await dialog.getByText('sessionStart').waitFor({ state: 'detached' });
  });

  test('include Claude Desktop, whose bundle can be downloaded (R-BUNDLE-07)', async () => {
    const { clients, put } = createClientHome();
    const folder = process.platform === 'darwin' ? 'Library/Application Support/Claude' : '.config/Claude';
    put(`${folder}/claude_desktop_config.json`, '{}');
    const { page } = await opened({ clients });
    await page.getByRole('button', { name: 'Connect Claude Desktop' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Claude Desktop' });
    await dialog.getByText('Use the bundle instead').click();
    expect(await accessibilityViolations(page)).toEqual([]);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('link', { name: 'Download the bundle' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('helmdeck-memory.mcpb');
    expect(readFileSync(await download.path())).toEqual(bundle());
  });

  test('are paused, resumed and revoked (R-CONN-11, R-CONN-09)', async () => {
    const { page, line, connect } = await withCodex();
    await connect();
    await page.getByRole('button', { name: 'Pause Codex' }).click();
    await line.getByText('Paused. The agent has no access until you resume it.').waitFor();
    await page.getByRole('button', { name: 'Test Codex' }).click();
    await toast(page).getByText("can't connect. This token is paused").waitFor();
    await page.getByRole('button', { name: 'Resume Codex' }).click();
    await page.getByRole('button', { name: 'Pause Codex' }).waitFor();
    await page.getByRole('button', { name: 'Revoke the token of Codex' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await line.getByText("The agent's token was revoked or has expired.").waitFor();
    expect(await line.getByRole('button').allInnerTexts()).toEqual(['Repair…', 'Disconnect…']);
  });

  test('are offered only the packs that the owner selects (R-CONN-11, R-CONN-14)', async () => {
    const { page, line, connect } = await withCodex();
    await connect();
    const dialog = page.getByRole('dialog', { name: 'Packs for Codex' });
    await page.getByRole('button', { name: 'Packs for Codex' }).click();
    await dialog.getByRole('checkbox', { name: /^All packs/ }).uncheck();
    await dialog.getByRole('checkbox', { name: /helmdeck\.route$/ }).check();
    expect(await dialog.getByRole('checkbox', { name: /memory_store/ }).count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await line.getByText('Offered one pack.').waitFor();
    await page.getByRole('button', { name: 'Packs for Codex' }).click();
    expect(await dialog.getByRole('checkbox', { name: /helmdeck\.route$/ }).isChecked()).toBe(true);
    await dialog.getByRole('checkbox', { name: /^All packs/ }).check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await line.getByText('Offered one pack.').waitFor({ state: 'detached' });
  });

  test('are shown facts at the moments that the owner chooses, and the preview follows the choice (R-WIN-55)', async () => {
    const { page, line } = await withCodex();
    await page.getByRole('button', { name: 'Connect Codex' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Codex' });
    const added = async () => (await dialog.locator('ins').allTextContents()).join('');
    const start = dialog.getByRole('checkbox', { name: 'At the start of a session' });
    const prompt = dialog.getByRole('checkbox', { name: 'Before each prompt' });
    const review = dialog.getByRole('checkbox', { name: 'Record in Codex that I have reviewed these hooks' });
    await expect.poll(added).toMatch(/SessionStart[^]*UserPromptSubmit/);
    expect([await start.isChecked(), await prompt.isChecked(), await review.isChecked()]).toEqual([true, true, false]);
    expect(await added()).not.toContain('trusted_hash');
    await review.check();
    await expect.poll(added).toContain('trusted_hash');
    expect(await accessibilityViolations(page)).toEqual([]);
    // The owner has not seen the hooks of another choice, so the tick is removed.
    await prompt.uncheck();
    await expect.poll(added).not.toContain('UserPromptSubmit');
    expect(await review.isChecked()).toBe(false);
    expect(await added()).not.toContain('trusted_hash');
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByRole('dialog', { name: 'Codex is connected' }).getByText('tested:').waitFor();
    await page.keyboard.press('Enter');
    await line.getByText('Its hooks wait for your review: Codex asks you when you start it.').waitFor();
    await page.getByRole('button', { name: 'Change Codex' }).click();
    const change = page.getByRole('dialog', { name: 'Change Codex' });
    await change.getByRole('checkbox', { name: 'Record in Codex that I have reviewed these hooks' }).check();
    await change.getByText('trusted_hash').first().waitFor();
    await change.getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByRole('dialog', { name: 'Codex is connected' }).getByText('tested:').waitFor();
    await page.keyboard.press('Enter');
    await line.getByText('Shown facts at the start of a session.').waitFor();
  });

  test('stay in quarantine, and propose facts from prompts, only as the owner chooses (R-WIN-55)', async () => {
    const { page, line, served } = await withCodex();
    await page.getByRole('button', { name: 'Connect Codex' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Codex' });
    const capture = dialog.getByRole('checkbox', { name: 'Propose facts from what I say to Codex' });
    expect(await capture.isChecked()).toBe(false);
    await dialog.getByRole('checkbox', { name: 'Keep Codex in quarantine' }).check();
    await capture.check();
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByRole('dialog', { name: 'Codex is connected' }).getByText('tested:').waitFor();
    await page.keyboard.press('Enter');
    await line.getByText('In quarantine: its changes wait in the Inbox.').waitFor();
    await line.getByText('Facts from your prompts wait in the Inbox.').waitFor();
    // A change keeps the quarantine unless the owner ends it.
    await page.getByRole('button', { name: 'Change Codex' }).click();
    const change = page.getByRole('dialog', { name: 'Change Codex' });
    expect(await change.getByRole('checkbox', { name: 'Keep Codex in quarantine' }).isChecked()).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Prompts to Codex' }).click();
    const prompts = page.getByRole('dialog', { name: 'Your prompts to Codex' });
    await prompts.getByRole('checkbox', { name: 'Store such facts at once' }).check();
    expect(await accessibilityViolations(page)).toEqual([]);
    await prompts.getByRole('button', { name: 'Save' }).click();
    await line.getByText('Facts from your prompts are stored at once.').waitFor();
    await page.getByRole('button', { name: 'Prompts to Codex' }).click();
    await prompts.getByRole('checkbox', { name: 'Propose facts from what I say to Codex' }).uncheck();
    expect(await prompts.getByRole('checkbox', { name: 'Store such facts at once' }).isDisabled()).toBe(true);
    await prompts.getByRole('button', { name: 'Save' }).click();
    await line.getByText('Facts from your prompts').waitFor({ state: 'detached' });
    const rows = (await served.perform(theOwner, 'clients', {})).clients;
    const codex = rows.find(({ id }) => id === 'codex');
    expect([codex?.token?.quarantined, codex?.capture, codex?.accept]).toEqual([true, undefined, undefined]);
  });

  test('that lost our entry are detected and repaired (R-CONN-11, R-CONN-04)', async () => {
    const { page, line, path, connect, now } = await withCodex({ colorScheme: 'dark' });
    await connect();
    writeFileSync(path, '# wiped\n');
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await line.getByText('The entry for Helmdeck Memory is missing from the configuration.').waitFor();
    await page.getByRole('button', { name: 'Repair Codex' }).click();
    const dialog = page.getByRole('dialog', { name: 'Repair Codex' });
    await dialog.locator('ins').first().waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Repair' }).click();
    await page.getByRole('dialog', { name: 'Codex is connected' }).waitFor();
    expect(now()).toMatch(/^# wiped\n\n\[mcp_servers\.helmdeck\]\n/);
  });

  test('with a foreign entry under our name can only be connected (R-CONN-04)', async () => {
    const { page, line, path } = await withCodex();
    writeFileSync(path, '[mcp_servers.helmdeck]\nurl = "http://mine"\n');
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await line.getByText('The configuration has a different entry for Helmdeck Memory.').waitFor();
    expect(await line.getByRole('button').allInnerTexts()).toEqual(['Connect…']);
  });

  test('show a new plan if the configuration changed, and an error if it is invalid (R-CONN-05, R-CONN-06)', async () => {
    const { page, line, path, now } = await withCodex();
    await page.getByRole('button', { name: 'Connect Codex' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Codex' });
    await dialog.locator('ins').first().waitFor();
    writeFileSync(path, '# other\n');
    await dialog.getByRole('textbox', { name: 'Memory' }).fill('work');
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
    await dialog.getByText('have changed since the preview').waitFor();
    await dialog.getByText('# other').waitFor();
    expect(now()).toBe('# other\n');
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByRole('dialog', { name: 'Codex is connected' }).getByText('the memory of work').waitFor();
    await page.keyboard.press('Enter');
    writeFileSync(path, '[broken');
    await goTo(page, 'Settings');
    await goTo(page, 'Connect');
    await line.getByText(/not valid TOML \(line 1\)/).waitFor();
  });
});
