/** Takes the screenshots in docs/pictures: the built window in a real Chromium, with a memory of invented facts. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as driver, type Page } from 'playwright-core';
import type { Caller } from '../../src/core/access/caller.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { fileSource } from '../../src/core/crypto/keys/file-source.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import type { Clock } from '../../src/core/time/clock.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { readConfig } from '../../src/main/config/config.ts';
import { SettingsEditor } from '../../src/main/config/settings-editor.ts';
import { CONNECTORS } from '../../src/main/connect/clients.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import { localMachine } from '../../src/main/connect/programs.ts';
import { createNetworkPacks, createLazyEgress } from '../../src/main/egress/network-packs.ts';
import { readBuildInfo, ROOT } from '../../src/main/roots/installation.ts';
const PICTURES = join(ROOT, 'docs/pictures');
const HOUR = 3_600_000;

/** A fixed time, so that pictures differ only where the window changed. */
let now = Date.UTC(2026, 5, 3, 14, 2);
const clock: Clock = {
  now: () => now,
  steady: () => now,
  uptime: () => now,
  uptimeOrigin: () => undefined,
  synchronized: () => Promise.resolve(true),
  after: () => ({ [Symbol.dispose]: () => undefined }),
};

const facts: readonly [client: string, key: string, value: string, category: string, tags: string[], hours?: number][] = [
  [
    'claude-code',
    'project/deploy-target',
    'Staging runs on the small cluster; production on the two machines in the cellar.',
    'decisions',
    ['deploy'],
  ],
  ['codex', 'preferences/lang/backend', 'Go for services, Python only for notebooks.', 'preferences', ['backend']],
  [
    'gemini-cli',
    'travel/summer',
    'Two weeks in Lisbon from 12 July; flights are booked, the flat is not.',
    'plans',
    ['travel'],
    20,
  ],
  ['claude-code', 'preferences/tests', 'Table tests first; mocks only at the network.', 'preferences', ['testing']],
  ['claude-code', 'conventions/commits', 'Imperative subjects, the reason in the body, one idea each.', 'conventions', ['git']],
  [
    'codex',
    'project/api/versioning',
    'The version stands in the path; a field is never renamed, only added.',
    'decisions',
    ['api'],
  ],
  ['codex', 'conventions/branches', 'Short branches, one for each change, squashed when they land.', 'conventions', ['git']],
  ['gemini-cli', 'travel/trains', 'By train where it takes less than eight hours.', 'preferences', ['travel']],
  ['claude-desktop', 'people/grace', 'Grace answers for the releases; ask her before Thursday.', 'people', ['release']],
  ['claude-code', 'project/logs', 'Logs stay for two weeks and hold no addresses.', 'decisions', ['ops']],
  ['claude-desktop', 'people/ada', 'Ada reviews database changes; she is out on Fridays.', 'people', ['review']],
  ['claude-code', 'preferences/frontend-framework', 'Vue, because the old code uses it.', 'preferences', ['frontend']],
  [
    'claude-desktop',
    'preferences/frontend-framework',
    'React over Vue (a constraint of the new design system).',
    'preferences',
    ['frontend', 'design'],
  ],
];

const caller = (client: string): Caller => ({
  subject: 'me',
  client,
  transport: 'mcp',
  token: '',
  scopes: new Set(['memory:read', 'memory:write', 'packs:run', 'admin']),
});

const folder = mkdtempSync(join(tmpdir(), 'helmdeck-pictures-'));
const keyFile = fileSource(folder);
await keyFile.save('current', randomBytes(32));
const store = await openStore({ folder, clock, sources: () => [keyFile] });
const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
// A home folder with used agents, and nothing of the developer who takes the pictures.
const home = join(folder, 'home');
mkdirSync(join(home, '.codex'), { recursive: true });
mkdirSync(join(home, '.gemini'));
writeFileSync(join(home, '.claude.json'), '{}');
writeFileSync(join(home, '.codex', 'config.toml'), '');
writeFileSync(join(home, '.gemini', 'settings.json'), '{}');
const machine = { environment: { PATH: '', HOME: home }, platform: process.platform, home: () => home };
const host = localMachine(machine, () => []);
const clients = new Connections({ connectors: CONNECTORS, machine: host, tokens, folder, now: () => now });
// Invented settings.
const environment = { HELMDECK_DATA_DIR: '/home/ada/.local/share/helmdeck-memory', HELMDECK_FETCH_HOSTS: 'docs.example.com' };
const config = readConfig({ environment, platform: 'linux', home: () => '/home/ada' });
const { version } = readBuildInfo();
const { perform } = createCore({
  store,
  tokens,
  finder: new Finder(store),
  clock,
  clients: async () => clients,
  packs: { packs: createNetworkPacks({ clock, egress: createLazyEgress({ clock }), fetchHosts: config.fetchHosts }) },
  settings: new SettingsEditor(config, { environment: {} }),
  program: { version, listening: () => ({ at: 'listening', url: `http://${config.address}` }) },
});
const listener = await startListener({
  perform,
  tokens,
  onChange: (hear) => store.onChange(hear),
  folder,
  address: '127.0.0.1:0',
  windowFolder: join(ROOT, 'out/renderer'),
  version,
  clock,
});
const browser = await driver.launch({
  executablePath: process.env['CHROME_PATH'] ?? (await chromium.executablePath()),
  args: ['--no-sandbox', '--font-render-hinting=none', '--force-color-profile=srgb'],
});
mkdirSync(PICTURES, { recursive: true });

await picture('first-run', (page) => page.getByText(/^Found on this computer/).waitFor());
for (const [client, key, value, category, tags, hours] of facts) {
  now += 7 * 60_000;
  await perform(caller(client), 'remember', {
    key,
    value,
    category,
    tags,
    ...(hours !== undefined && { ttl_seconds: hours * 3600 }),
  });
}
await perform(caller('codex'), 'createPipeline', {
  id: 'morning',
  title: 'What is open this morning',
  description: 'Issues of a repository, and the page that says who is on duty.',
  inputs: [{ name: 'repo', description: 'Such as octocat/hello-world.' }],
  steps: [
    { id: 'issues', pack: 'github.list_issues', input: { repo: '${{ inputs.repo }}' } },
    { id: 'duty', pack: 'http.fetch', input: { url: 'https://docs.example.com/on-duty' } },
  ],
});
now += HOUR;
for (const client of ['claude-code', 'codex']) await clients.connect({ client, subject: 'me' });

const rowsOf = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option');
const goTo = (page: Page, name: string | RegExp) =>
  page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name, exact: true }).click();

await picture('facts', (page) => rowsOf(page).first().click());
await picture('search', async (page) => {
  await page.getByRole('searchbox', { name: 'Search facts' }).fill('which framework for the frontend');
  await page.getByText('React over Vue').first().waitFor();
  await rowsOf(page).first().click();
});
await perform(caller('gemini-cli'), 'brief', { session: 'a session' });
now += 60_000;
const stranger: Caller = { ...caller('notes-app'), quarantined: true };
await perform(stranger, 'remember', {
  key: 'preferences/editor',
  value: 'Helix, with the default theme.',
  category: 'preferences',
  tags: ['tools'],
});
now += 60_000;
await perform(stranger, 'remember', {
  key: 'conventions/branches',
  value: 'Short branches, one for each change, merged when they land.',
  category: 'conventions',
  tags: ['git'],
});
await picture('inbox', (page) => goTo(page, /^Inbox/));
for (const name of ['Connect', 'Packs', 'Activity', 'Settings']) await picture(name.toLowerCase(), (page) => goTo(page, name));
await browser.close();
await listener.close();
await store[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });
process.exit();

/** Takes one screenshot in light and one in dark mode. */
async function picture(name: string, show: (page: Page) => Promise<unknown>): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({
      viewport: { width: 920, height: 620 },
      deviceScaleFactor: 2,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
      colorScheme,
    });
    await page.clock.install({ time: now });
    await page.clock.setFixedTime(now);
    await page.goto(listener.windowLink() ?? '');
    await show(page);
    // Wait until every request has a response and the page is painted.
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(PICTURES, `${name}-${colorScheme}.png`), caret: 'hide', animations: 'disabled' });
    await page.close();
  }
}
