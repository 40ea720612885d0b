import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { collectPageErrors, openWindow, scriptBytes } from '../support/window.ts';

describe('a link', () => {
  test('disappears from the address at once, and its session survives a reload (R-WIN-01, R-WIN-02)', async () => {
    const { page, served } = await openWindow();
    expect(page.url()).toBe(`${served.url}/`);
    await page.reload();
    await page.getByRole('searchbox', { name: 'Search facts' }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  test('works once, and then explains how to get a new link', async () => {
    const { page, served } = await openWindow({ allowedErrors: /401/ });
    const link = served.listener.windowLink() ?? '';
    const [first, second] = [await page.context().newPage(), await page.context().newPage()];
    await first.goto(link);
    await first.getByRole('searchbox', { name: 'Search facts' }).waitFor();
    await second.goto(link);
    await second.getByRole('heading', { name: 'This window is closed' }).waitFor();
    // The page cannot know how the command line was installed.
    expect(await second.locator('code').allTextContents()).toEqual(['helmdeck-memory window', 'npx helmdeck-memory window']);
    await second.goto(`${served.url}/`);
    await second.getByRole('heading', { name: 'This window is closed' }).waitFor();
  });

  test('opens the window in a tab that shows it as closed (R-USE-01)', async () => {
    const { page, served } = await openWindow({ allowedErrors: /401/ });
    const tab = await page.context().newPage();
    await tab.goto(`${served.url}/`);
    await tab.getByRole('heading', { name: 'This window is closed' }).waitFor();
    await tab.goto(served.listener.windowLink() ?? '');
    await tab.getByRole('searchbox', { name: 'Search facts' }).waitFor();
    expect(tab.url()).toBe(`${served.url}/`);
  });
});

test('the window requests its first facts before anything else, and few of them', async () => {
  const asked: string[] = [];
  const limits: unknown[] = [];
  const { page } = await openWindow({
    async seed(as) {
      for (let index = 0; index < 60; index += 1) await as()('remember', { key: `k${index}`, value: 'v' });
    },
    async before(opening) {
      opening.on('request', (request) => {
        const [, name] = /\/window\/call\/(\w+)/.exec(request.url()) ?? [];
        if (name !== undefined) asked.push(name);
        if (name === 'list') limits.push((request.postDataJSON() as { limit: number }).limit);
      });
    },
  });
  await page.getByRole('option', { name: /k/ }).first().waitFor();
  await page.getByRole('combobox', { name: 'Tag or client' }).waitFor();
  expect(asked[0]).toBe('list');
  // The next page is requested at once, so that the count is correct.
  await page.getByText('60 facts', { exact: true }).waitFor();
  expect(limits.slice(0, 2)).toEqual([40, 200]);
});

test('seven tabs of one browser all receive changes, even after the first is closed (R-STAY-04)', async () => {
  const { page, served, as } = await openWindow();
  const tabs = [page];
  while (tabs.length < 7) {
    const tab = await page.context().newPage();
    tab.setDefaultTimeout(30_000);
    await tab.goto(served.listener.windowLink() ?? '');
    tabs.push(tab);
  }
  for (const tab of tabs) await tab.getByText('No facts yet.').waitFor();
  const all = async (open: readonly (typeof page)[], key: string): Promise<void> => {
    await as()('remember', { key, value: 'v' });
    for (const tab of open) await tab.getByRole('option', { name: new RegExp(key) }).waitFor();
  };
  await all(tabs, 'note/one');
  await page.close();
  await all(tabs.slice(1), 'note/two');
  expect(tabs).toHaveLength(7);
});

test('Back, Forward and Reload work with pages (R-USE-03)', async () => {
  const { page } = await openWindow();
  const settings = page.getByRole('heading', { name: 'Settings', level: 1 });
  await page.getByRole('button', { name: 'Settings' }).click();
  await settings.waitFor();
  await page.goBack();
  await page.getByRole('searchbox', { name: 'Search facts' }).waitFor();
  await page.goForward();
  await settings.waitFor();
  await page.reload();
  await settings.waitFor();
  expect(await settings.count()).toBe(1);
});

test('the search box has the focus at first', async () => {
  const { page } = await openWindow();
  expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Search facts');
});

test('the window sends requests only to its own origin (R-WIN-08)', async () => {
  const { page, served } = await openWindow();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.reload();
  await page.getByText('No facts yet.').waitFor();
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.filter((url) => !url.startsWith(`${served.url}/`))).toEqual([]);
});

test('the script has at most 450 kB and never turns text into markup (R-WIN-07, R-WIN-08)', () => {
  expect(scriptBytes()).toBeLessThanOrEqual(450_000);
  const sources = globSync('src/renderer/**/*.{ts,tsx}').map((path) => readFileSync(path, 'utf8'));
  expect(sources.length).toBeGreaterThan(20);
  for (const sign of [
    /dangerouslySetInnerHTML/,
    /innerHTML|outerHTML|insertAdjacentHTML/,
    /openExternal|window\.open/,
    // The one allowed link downloads the bundle.
    /\bhref=(?!\{`\/\$\{CLAUDE_BUNDLE\}`\})/,
  ]) {
    expect(sources.filter((text) => sign.test(text))).toEqual([]);
  }
});

test('a page from another port cannot access an open window (R-WIN-03)', async () => {
  const { page, served } = await openWindow();
  const stranger = createServer((_request, response) => response.end('<!doctype html><title>stranger</title><p>hello</p>'));
  await new Promise<void>((resolve) => void stranger.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void stranger.close());
  const other = await page.context().newPage();
  const errors = collectPageErrors(other);
  await other.goto(`http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`);
  const statuses: number[] = [];
  other.on('response', (response) => {
    if (response.url().startsWith(served.url)) statuses.push(response.status());
  });
  const outcomes = await other.evaluate(`Promise.all([
    fetch('${served.url}/').then(() => 'read', () => 'refused'),
    fetch('${served.url}/window/call/status?subject=me', { method: 'POST', body: '{}' }).then(() => 'read', () => 'refused'),
    fetch('${served.url}/window/open', { method: 'POST', mode: 'no-cors', body: '{}' }).then(({ status }) => status, () => 'refused'),
    new Promise((resolve) => {
      const image = document.createElement('img');
      image.onload = () => resolve('shown');
      image.onerror = () => resolve('refused');
      image.src = '${served.url}/icon.svg';
    }),
    new Promise((resolve) => {
      const script = document.createElement('script');
      script.onload = () => resolve('run');
      script.onerror = () => resolve('refused');
      script.src = '${served.url}/icon.svg';
      document.body.append(script);
    }),
  ])`);
  expect(outcomes).toEqual(['refused', 'refused', 0, 'refused', 'refused']);
  expect(new Set(statuses)).toEqual(new Set([403]));
  expect(errors.length).toBeGreaterThan(0);
});
