import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noMeaning } from '../../src/core/operations/meaning-port.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { manualClock, HOUR, SECOND } from '../support/clock.ts';
import { ChosenMeaning } from '../support/meaning.ts';
import { aDraft } from '../support/store.ts';
import { accessibilityViolations, openWindow, type WindowOptions } from '../support/window.ts';

const rows = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option');
const chosen = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option', { selected: true });
const list = (page: Page) => page.getByRole('listbox', { name: 'Facts' });
const fact = (page: Page) => page.getByRole('complementary', { name: 'Fact' });
const said = (page: Page) => page.locator('.list .status');
const toast = (page: Page) => page.locator('.toast');
const search = (page: Page) => page.getByRole('searchbox', { name: 'Search facts' });

const keys = async (page: Page): Promise<string[]> =>
  (await rows(page).locator('.key').allTextContents()).map((key) => key.trim());
async function shows(page: Page, wanted: readonly string[]): Promise<void> {
  await expect.poll(() => keys(page), { timeout: 45_000 }).toEqual(wanted);
}

const says = (page: Page, text: string | RegExp) => toast(page).getByText(text).waitFor();

const focused = (place: Locator) => place.evaluate((element: { matches(is: string): boolean }) => element.matches(':focus'));

/** Opens a memory with three facts by three clients. The last one expires soon. */
const three = (over: WindowOptions = {}) =>
  openWindow({
    clock: manualClock(),
    async seed(as) {
      const claude = as({ client: 'claude-code' });
      await claude('remember', {
        key: 'preferences/editor',
        value: 'Helix, with soft wrap',
        category: 'preferences',
        tags: ['tools'],
      });
      await as({ client: 'codex' })('remember', {
        key: 'project/deploy',
        value: 'Deploy on Tuesdays',
        category: 'decisions',
        tags: ['tools', 'ops'],
      });
      await as({ client: 'cursor' })('remember', {
        key: 'project/branch',
        value: 'Work on main',
        category: 'conventions',
        ttl_seconds: 5 * 3600,
      });
    },
    ...over,
  });

describe('the list', () => {
  test('shows all facts with their expiry, last changed first, without values', async () => {
    const { page } = await three();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
    expect(await rows(page).first().locator('time').textContent()).toBe('5 h');
    expect(await rows(page).first().locator('time').getAttribute('title')).toBe('3 June 2026 at 19:02');
    expect(await said(page).textContent()).toBe('3 facts');
    expect(await page.content()).not.toMatch('Tuesdays');
  });

  test('shows the count on one line with the menus', async () => {
    const { page, as } = await three();
    for (let more = 0; more < 60; more += 1)
      await as()('remember', { key: `more/${more}`, value: 'x', tags: ['a-tag-of-usual-length'] });
    await page.getByRole('listbox', { name: 'Facts' }).waitFor();
    await expect.poll(() => said(page).textContent()).toBe('63 facts');
    const [number, order] = await Promise.all([
      said(page).boundingBox(),
      page.getByRole('combobox', { name: 'Sort by' }).boundingBox(),
    ]);
    expect(number?.height).toBeLessThan(20);
    expect(Math.abs((number?.y ?? 0) - (order?.y ?? 0))).toBeLessThan(10);
  });

  test('sorts by expiry', async () => {
    const { page, as } = await three();
    await as()('remember', { key: 'last', value: 'x', ttl_seconds: 3600 });
    await page.getByRole('combobox', { name: 'Sort by' }).selectOption({ label: 'Expires first' });
    await shows(page, ['last', 'project/branch', 'preferences/editor', 'project/deploy']);
  });

  test('sorts Expiring soon by expiry, until the owner chooses another order there (R-WIN-51)', async () => {
    const { page, as } = await three();
    await as()('remember', { key: 'later', value: 'x', ttl_seconds: 6 * 24 * 3600 });
    await as()('remember', { key: 'sooner', value: 'x', ttl_seconds: 3600 });
    await as()('remember', { key: 'soon', value: 'x', ttl_seconds: 24 * 3600 });
    await page.getByRole('button', { name: 'Expiring soon' }).click();
    await shows(page, ['sooner', 'project/branch', 'soon', 'later']);
    await page.getByRole('combobox', { name: 'Sort by' }).selectOption({ label: 'Last changed' });
    await shows(page, ['soon', 'sooner', 'later', 'project/branch']);
    await page.getByRole('navigation').getByRole('button', { name: /^All/ }).click();
    await page.getByRole('combobox', { name: 'Sort by' }).selectOption({ label: 'Expires first' });
    await page.getByRole('combobox', { name: 'Sort by' }).selectOption({ label: 'Last changed' });
    await shows(page, ['soon', 'sooner', 'later', 'project/branch', 'project/deploy', 'preferences/editor']);
  });

  test('follows writes, deletions and expiry', async () => {
    const { page, as, advance: pass } = await three();
    await as()('remember', { key: 'new', value: 'x' });
    await shows(page, ['new', 'project/branch', 'project/deploy', 'preferences/editor']);
    await as()('forget', { scope: 'key:project/deploy' });
    await shows(page, ['new', 'project/branch', 'preferences/editor']);
    await pass(5 * HOUR + SECOND);
    await shows(page, ['new', 'preferences/editor']);
  });

  test('renders only visible rows, and loads more while scrolling (R-WIN-10)', async () => {
    const store = new RamStore(manualClock(), { facts: 3000, bytes: 2 ** 30 });
    const space = store.space({ subject: 'me' }, 'fact');
    for (let index = 0; index < 2000; index += 1) await space.put(aDraft({ key: `k/${String(index).padStart(4, '0')}` }));
    const { page } = await openWindow({ store });
    await rows(page).first().waitFor();
    await list(page).focus();
    for (let turn = 0; turn < 12; turn += 1) {
      await page.keyboard.press('End');
      await page.waitForTimeout(60);
    }
    await expect.poll(() => chosen(page).locator('.key').textContent()).toBe('k/0000');
    expect(await rows(page).count()).toBeLessThan(60);
    expect(await chosen(page).getAttribute('aria-setsize')).toBe('2000');
    await page.keyboard.press('Home');
    await expect.poll(() => chosen(page).locator('.key').textContent()).toBe('k/1999');
    await store[Symbol.asyncDispose]();
  });

  test('reads only visible pages again after a change (R-WIN-41)', async () => {
    const store = new RamStore(manualClock(), { facts: 3000, bytes: 2 ** 30 });
    const space = store.space({ subject: 'me' }, 'fact');
    for (let index = 0; index < 2000; index += 1) await space.put(aDraft({ key: `k/${String(index).padStart(4, '0')}` }));
    const { page, requests, as } = await openWindow({ store });
    const lists = (): number => requests.filter((url) => url.includes('/call/list')).length;
    await rows(page).first().waitFor();
    await list(page).focus();
    await expect
      .poll(async () => (await page.keyboard.press('End'), chosen(page).locator('.key').textContent()), { timeout: 45_000 })
      .toBe('k/0000');
    const reached = lists();
    // Eleven pages, and the visible pages again if the event stream connects late.
    expect(reached).toBeLessThan(14);
    await as()('forget', { scope: 'key:k/0001' });
    await expect.poll(() => keys(page)).not.toContain('k/0001');
    expect(lists()).toBeLessThan(reached + 5);
    await as()('remember', { key: 'new', value: 'x' });
    await expect.poll(() => said(page).textContent()).toBe('2,000 facts');
    expect(lists()).toBeLessThan(reached + 10);
    await page.keyboard.press('Home');
    await expect.poll(() => chosen(page).locator('.key').textContent()).toBe('new');
    await store[Symbol.asyncDispose]();
  });

  test('renders only new rows while scrolling', async () => {
    const store = new RamStore(manualClock());
    const space = store.space({ subject: 'me' }, 'fact');
    for (let index = 0; index < 100; index += 1) await space.put(aDraft({ key: `k/${String(index).padStart(4, '0')}` }));
    const { page } = await openWindow({ store });
    await expect.poll(() => said(page).textContent()).toBe('100 facts');
    // The number of rows changes until the whole window is laid out.
    let shown = 0;
    await expect.poll(async () => shown === (shown = await rows(page).count()), { interval: 250 }).toBe(true);
    // Each rendered row formats one date.
    await page.evaluate(`
      const { get } = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format');
      let made = 0;
      Object.defineProperty(Intl.DateTimeFormat.prototype, 'format', {
        get() {
          made += 1;
          document.body.dataset.made = made;
          return get.call(this);
        },
      });
    `);
    await page.evaluate(`document.querySelector('[role=listbox]').scrollTop = 15 * 34`);
    await expect.poll(() => rows(page).last().getAttribute('aria-posinset')).toBe(String(shown + 15));
    expect(Number(await page.evaluate('document.body.dataset.made'))).toBeLessThanOrEqual(15);
    await store[Symbol.asyncDispose]();
  });

  test('shows its first row when the arrow key moves there from the search box', async () => {
    const { page } = await openWindow({
      clock: manualClock(),
      async seed(as) {
        for (let index = 0; index < 60; index += 1) await as()('remember', { key: `k${index}`, value: 'x' });
      },
    });
    await rows(page).first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.waitForTimeout(100);
    expect(await list(page).evaluate(({ scrollTop }: { scrollTop: number }) => scrollTop)).toBe(0);
    expect(await chosen(page).locator('.key').textContent()).toBe('k59');
    for (let step = 0; step < 30; step += 1) await page.keyboard.press('j');
    for (let step = 0; step < 30; step += 1) await page.keyboard.press('k');
    const [frame, row] = [await list(page).boundingBox(), await chosen(page).boundingBox()];
    expect(row?.y).toBeGreaterThanOrEqual(frame?.y ?? Number.NaN);
    expect(await chosen(page).locator('.key').textContent()).toBe('k59');
  });

  test('says that it is empty, and offers the next step', async () => {
    const { page } = await openWindow();
    await page.getByText('No facts yet.').waitFor();
    await page.getByRole('button', { name: 'Connect an agent' }).waitFor();
    expect(await said(page).textContent()).toBe('0 facts');
  });
});

describe('the filter', () => {
  test('narrows the list by category, tag, client and expiry, and can be cleared', async () => {
    const { page } = await three();
    const sidebar = page.getByRole('navigation', { name: 'Sections' });
    await sidebar.getByRole('button', { name: 'decisions 1' }).click();
    await shows(page, ['project/deploy']);
    await rows(page).first().click();
    await fact(page).getByRole('button', { name: 'tools' }).click();
    await shows(page, ['project/deploy', 'preferences/editor']);
    await page.getByRole('button', { name: 'Clear the filter: tagged tools' }).click();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
    await rows(page).nth(2).click();
    await fact(page).getByRole('button', { name: 'claude-code' }).click();
    await shows(page, ['preferences/editor']);
    await sidebar.getByRole('button', { name: 'Expiring soon' }).click();
    await shows(page, ['project/branch']);
    await sidebar.getByRole('button', { name: 'All 3' }).click();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
  });

  test('offers all tags and clients, by keyboard too (R-SEEK-05)', async () => {
    const { page, as } = await three();
    await rows(page).first().waitFor();
    const names = page.getByRole('combobox', { name: 'Tag or client' });
    const offered = () => names.locator('optgroup option').allTextContents();
    await expect.poll(offered).toEqual(['ops', 'tools', 'claude-code', 'codex', 'cursor']);
    await rows(page).first().click();
    await page.keyboard.press('t');
    expect(await focused(names)).toBe(true);
    await names.selectOption('ops');
    await shows(page, ['project/deploy']);
    // The menu follows changes.
    await as({ client: 'zed' })('remember', { key: 'new', value: 'v', tags: ['fresh'] });
    await names.selectOption('cursor');
    await shows(page, ['project/branch']);
    await names.selectOption('All facts');
    await shows(page, ['new', 'project/branch', 'project/deploy', 'preferences/editor']);
    await expect.poll(offered).toEqual(['fresh', 'ops', 'tools', 'claude-code', 'codex', 'cursor', 'zed']);
    await as()('forget', { scope: 'key:new' });
    await expect.poll(offered).toEqual(['ops', 'tools', 'claude-code', 'codex', 'cursor']);
    await search(page).fill('client:nobody');
    await page.getByText('No facts written by nobody.').waitFor();
    expect(await names.inputValue()).toBe('client:nobody');
  });

  test('offers a tag that only the oldest of many facts has (R-SEEK-05)', async () => {
    const { page } = await openWindow({
      async seed(as) {
        await as({ client: 'first' })('remember', { key: 'oldest', value: 'v', tags: ['rare'] });
        for (let count = 0; count < 250; count += 1) await as()('remember', { key: `${count}`, value: 'v' });
      },
    });
    await page.getByRole('combobox', { name: 'Tag or client' }).selectOption('rare');
    await shows(page, ['oldest']);
  });

  test('offers to forget all matching facts after a preview (R-WIN-12)', async () => {
    const { page, as } = await three();
    await rows(page).first().waitFor();
    expect(await page.getByRole('button', { name: 'Forget all…' }).count()).toBe(0);
    await page.getByRole('navigation').getByRole('button', { name: 'preferences 1' }).click();
    await shows(page, ['preferences/editor']);
    await page.getByRole('button', { name: 'Forget all…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Forget all facts in preferences?' });
    await dialog.getByText('1 fact will be deleted').waitFor();
    await dialog.getByRole('button', { name: 'Forget' }).click();
    await says(page, '1 fact forgotten.');
    expect((await as()('status', {})).facts).toBe(2);
  });

  test('keeps the other sections visible with many categories', async () => {
    const { page } = await openWindow({
      async seed(as) {
        for (let count = 10; count < 50; count += 1)
          await as()('remember', { key: `${count}`, value: 'v', category: `c${count}` });
      },
    });
    const sidebar = page.getByRole('navigation', { name: 'Sections' });
    await sidebar.getByRole('button', { name: 'c49 1' }).waitFor();
    expect((await sidebar.getByRole('button', { name: 'Settings' }).boundingBox())?.y).toBeLessThan(620 - 28);
    await sidebar.getByRole('button', { name: 'c49 1' }).click();
    await shows(page, ['49']);
  });

  test('shows how many facts expire soon, the same number as the list (R-SEEK-05)', async () => {
    const { page, as } = await three();
    await page.getByRole('button', { name: 'Expiring soon 1' }).waitFor();
    await as()('remember', { key: 'week', value: 'v', ttl_seconds: 7 * 86_400 });
    await page.getByRole('button', { name: 'Expiring soon 2' }).click();
    await shows(page, ['project/branch', 'week']);
  });

  test('cuts a long name and keeps the button that clears it visible', async () => {
    const name = 'n'.repeat(64);
    const { page } = await three({
      seed: async (as) => as({})('remember', { key: 'a', value: 'x', category: name, tags: [name] }),
    });
    await page.getByRole('button', { name }).first().waitFor();
    expect((await page.locator('.categories .entry').boundingBox())?.height).toBeLessThan(30);
    await search(page).fill(`tag:${name}`);
    const chip = page.getByRole('button', { name: /^Clear the filter: tagged/ });
    expect((await chip.boundingBox())?.height).toBeLessThan(30);
    const [whole, cross] = await Promise.all([chip.boundingBox(), chip.locator('span').last().boundingBox()]);
    expect((cross?.x ?? 0) + (cross?.width ?? 0)).toBeLessThan((whole?.x ?? 0) + (whole?.width ?? 0));
  });

  test('can be typed in the search box', async () => {
    const { page } = await three();
    await search(page).fill('client:codex');
    await shows(page, ['project/deploy']);
    await search(page).fill('tag:ops');
    await shows(page, ['project/deploy']);
    await search(page).fill('category:nothing-here');
    await page.getByText('No facts in nothing-here.').waitFor();
    await page.getByRole('button', { name: 'Show all', exact: true }).click();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
  });

  test('applies while it is in the search box (R-WIN-50)', async () => {
    const { page, as } = await three();
    await as()('remember', { key: 'quoted', value: 'Deploy "by hand"', tags: ['two words', 'a "b" c'] });
    await search(page).fill('tag:tools deploy');
    await shows(page, ['project/deploy']);
    await page.getByRole('button', { name: /^Clear the filter: tagged tools/ }).waitFor();
    await search(page).fill('deploy');
    await shows(page, ['project/deploy', 'quoted']);
    expect(await page.getByRole('button', { name: /^Clear the filter/ }).count()).toBe(0);
    await search(page).fill('deploy tag:"two words"');
    await shows(page, ['quoted']);
    await search(page).fill(String.raw`tag:"a \"b\" c"`);
    await shows(page, ['quoted']);
    await search(page).press('Escape');
    await shows(page, ['quoted', 'project/branch', 'project/deploy', 'preferences/editor']);
    await page.getByRole('combobox', { name: 'Tag or client' }).selectOption('two words');
    await shows(page, ['quoted']);
    await search(page).fill('client:codex');
    await shows(page, ['project/deploy']);
    // A filter from the sidebar replaces the typed one.
    await page.getByRole('button', { name: 'conventions' }).click();
    await shows(page, ['project/branch']);
    expect(await search(page).inputValue()).toBe('');
  });

  test('finds facts while words are typed, with the reason for each result', async () => {
    const { page } = await three();
    await search(page).fill('tuesdays');
    await shows(page, ['project/deploy']);
    expect(await rows(page).first().locator('.why').textContent()).toMatch(/"tuesday\w*" in value/);
    expect(await rows(page).first().locator('.snippet').textContent()).toBe('Deploy on Tuesdays');
    expect(await said(page).textContent()).toBe('1 result');
    await search(page).fill('konfluks');
    await page.getByText('No facts match “konfluks”.').waitFor();
    await page.getByRole('button', { name: 'Clear search' }).click();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
  });

  test('shows the matched part of a long value, and names each field once', async () => {
    const { page, as } = await three();
    const before = 'much other text at the beginning, and more of it, ';
    await as()('remember', { key: 'long', value: `${before}then the staging cluster in Lisbon, ${'and so on, '.repeat(30)}` });
    await search(page).fill('staging cluster lisbon');
    await shows(page, ['long']);
    const hit = rows(page).first();
    expect(await hit.locator('mark').allTextContents()).toEqual(['staging', 'cluster', 'Lisbon']);
    expect(await hit.locator('.snippet').textContent()).toMatch(/^…it, then the staging cluster in Lisbon, and/);
    expect(await hit.locator('.why').textContent()).toMatch(/^"\w+", "\w+", "\w+" in value$/);
    const [line, last] = await Promise.all([hit.locator('.snippet').boundingBox(), hit.locator('mark').last().boundingBox()]);
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThan((line?.x ?? 0) + (line?.width ?? 0));
    await search(page).fill('tuesdays');
    await shows(page, ['project/deploy']);
    expect(await rows(page).first().locator('mark').allTextContents()).toEqual(['Tuesdays']);
  });

  test('shows results by words at once, and those by meaning when they arrive (R-MEAN-41)', async () => {
    const meaning = new ChosenMeaning({ cosines: { 'preferences/editor': 0.7, 'project/branch': 0.1 } });
    const model = Promise.withResolvers<void>();
    meaning.onQuestion = () => model.promise;
    const store = new RamStore(manualClock());
    using _watching = meaning.watch(store);
    const state = { at: 'ready', source: 'bundled', model: 'a model' } as const;
    const { page } = await three({ meaning, meaningModel: { ...noMeaning, choice: 'bundled', state }, store });
    await search(page).fill('which program do I write in, and when do I deploy?');
    await shows(page, ['project/deploy']);
    model.resolve();
    await shows(page, ['preferences/editor', 'project/deploy']);
    expect(await rows(page).first().locator('.why').textContent()).toBe('similar in meaning (0.70)');
    expect(await rows(page).first().locator('.snippet').textContent()).toBe('Helix, with soft wrap');
    expect(meaning.asked).toEqual(['which program do I write in, and when do I deploy?']);
  });

  test('searches once, by words, while search by meaning is off (R-MEAN-26)', async () => {
    const meaning = new ChosenMeaning({ cosines: { 'preferences/editor': 0.7 } });
    const store = new RamStore(manualClock());
    using _watching = meaning.watch(store);
    const { page } = await three({ meaning, store });
    await search(page).fill('when do I deploy?');
    await shows(page, ['project/deploy']);
    await search(page).fill('when do I deploy, on tuesdays?');
    await expect.poll(() => rows(page).first().locator('mark').allTextContents()).toEqual(['Deploy', 'Tuesdays']);
    expect(meaning.asked).toEqual([]);
  });

  test('applies to search results (R-SEEK-01)', async () => {
    const { page } = await three();
    await search(page).fill('tag:tools');
    await shows(page, ['project/deploy', 'preferences/editor']);
    await search(page).fill('tag:tools helix main tuesdays');
    await shows(page, ['project/deploy', 'preferences/editor']);
    await search(page).fill('branch tag:tools');
    await page.getByText('No facts tagged tools match “branch”.').waitFor();
    await search(page).fill('client:cursor');
    await shows(page, ['project/branch']);
    await search(page).fill('client:cursor project');
    await shows(page, ['project/branch']);
    await page.getByRole('button', { name: 'Expiring soon' }).click();
    await search(page).fill('tuesdays main');
    await shows(page, ['project/branch']);
    await page.getByRole('button', { name: 'Clear the filter: expiring within 7 days' }).click();
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
    await page.getByRole('button', { name: 'conventions 1' }).click();
    await search(page).fill('tuesdays');
    await page.getByText('No facts in conventions match “tuesdays”.').waitFor();
    await search(page).fill('main');
    await shows(page, ['project/branch']);
  });

  test('shows one memory at a time, which the owner chooses', async () => {
    const { page } = await three({
      async seed(as) {
        await as()('remember', { key: 'mine', value: 'x' });
        await as({ subject: 'you' })('remember', { key: 'yours', value: 'y' });
      },
    });
    await shows(page, ['mine']);
    await page.getByRole('combobox', { name: 'Memory' }).selectOption('you');
    await shows(page, ['yours']);
  });
});

describe('a fact', () => {
  test('shows its value, author, date and expiry', async () => {
    const { page, as } = await three();
    await as({ client: 'codex' })('remember', {
      key: 'project/draft',
      value: 'Work on branches',
      category: 'conventions',
      ttl_seconds: 3600,
    });
    await rows(page).filter({ hasText: 'draft' }).click();
    await fact(page).getByText('Work on branches').waitFor();
    const text = await fact(page).innerText();
    expect(text).toMatch('Written by codex, 3 June 2026 at 14:02');
    expect(text).toMatch('Expires 3 June 2026 at 15:02 (1 hour)');
  });

  test('shows each change of its history, and can be restored to an earlier version', async () => {
    const { page, as, advance: pass } = await three();
    await pass(HOUR);
    await as({ client: 'codex' })('remember', {
      key: 'preferences/editor',
      value: 'Zed, with soft wrap',
      category: 'preferences',
      tags: ['new'],
    });
    await rows(page).filter({ hasText: 'editor' }).click();
    await fact(page).getByRole('button', { name: 'History' }).click();
    const history = fact(page).getByRole('region', { name: 'History' });
    await history.getByText('claude-code, 3 June 2026 at 14:02').waitFor();
    expect(await history.locator('.meta').allTextContents()).toEqual([
      'Changed by codex, 3 June 2026 at 15:02',
      'Earlier version by claude-code, 3 June 2026 at 14:02',
    ]);
    expect(await history.locator('del').allTextContents()).toEqual(['Helix,', 'tools']);
    expect(await history.locator('ins').allTextContents()).toEqual(['Zed,', 'new']);
    await history.getByRole('button', { name: 'Restore the version by claude-code' }).click();
    await fact(page).locator('pre').getByText('Helix, with soft wrap').waitFor();
    const restored = await as()('recall', { key: 'preferences/editor' });
    expect(restored).toMatchObject({ value: 'Helix, with soft wrap', tags: ['tools'], client: 'window' });
    expect((await as()('history', { key: 'preferences/editor' })).versions.map(({ value }) => value)).toEqual([
      'Zed, with soft wrap',
      'Helix, with soft wrap',
    ]);
  });

  test('names the key of a superseded fact in its history, and in Activity (R-MEAN-30)', async () => {
    const { page, as, advance: pass } = await three();
    await pass(HOUR);
    await as({ client: 'codex' })('remember', { key: 'editor', value: 'Zed', supersedes: 'preferences/editor' });
    await shows(page, ['editor', 'project/branch', 'project/deploy']);
    await rows(page).filter({ hasText: 'editor' }).click();
    await fact(page).getByRole('button', { name: 'History' }).click();
    const history = fact(page).getByRole('region', { name: 'History' });
    await history.getByText('claude-code, 3 June 2026 at 14:02').waitFor();
    expect(await history.locator('.meta').allTextContents()).toEqual([
      'Changed by codex, 3 June 2026 at 15:02',
      'Earlier version by claude-code, 3 June 2026 at 14:02, under the key preferences/editor',
    ]);
    await page.getByRole('button', { name: 'Activity' }).click();
    await page.getByText('in place of').first().waitFor();
    expect(await page.getByText('in place of').first().innerText()).toMatch(/editor in place of preferences\/editor/);
  });

  test('keeps its remaining lifetime when it is restored', async () => {
    const { page, as, advance: pass } = await three();
    await as()('remember', { key: 'project/release', value: 'second', ttl_seconds: 86_400 });
    await as()('remember', { key: 'project/release', value: 'third', ttl_seconds: 7200 });
    await pass(0.5 * HOUR);
    await rows(page).filter({ hasText: 'release' }).click();
    await fact(page).getByRole('button', { name: 'History' }).click();
    await fact(page)
      .getByRole('button', { name: /Restore/ })
      .first()
      .click();
    await fact(page).locator('pre').getByText('second').waitFor();
    expect((await as()('recall', { key: 'project/release' })).expires_at).toBe('2026-06-03T16:02:00.000Z');
  });

  test.each([
    { width: 920, height: 620, forcedColors: 'none' },
    { width: 640, height: 420, forcedColors: 'active' },
  ] as const)(
    'keeps author, expiry and buttons reachable below a long value, in $width × $height (R-WIN-43)',
    async ({ forcedColors, ...viewport }) => {
      const { page, as } = await three({ viewport, forcedColors });
      await as()('remember', { key: 'long', value: 'A line that goes on.\n'.repeat(3120) + 'The end', tags: ['tools'] });
      await rows(page).filter({ hasText: 'long' }).click();
      const value = fact(page).getByRole('region', { name: 'Value' });
      await value.waitFor();
      const { height = 0 } = (await fact(page).boundingBox()) ?? {};
      const bottom = async (place: Locator): Promise<number> => {
        const box = await place.boundingBox();
        return (box?.y ?? Infinity) + (box?.height ?? 0);
      };
      const forget = fact(page).getByRole('button', { name: 'Forget' });
      expect(await bottom(forget)).toBeLessThan(1.5 * height);
      await fact(page).getByRole('button', { name: 'History' }).scrollIntoViewIfNeeded();
      await forget.scrollIntoViewIfNeeded();
      expect(await bottom(forget)).toBeLessThanOrEqual(viewport.height);
      // The arrow keys then scroll the value.
      await list(page).focus();
      await page.keyboard.press('ArrowRight');
      expect(await focused(value)).toBe(true);
      await page.keyboard.press('End');
      await expect
        .poll(() =>
          value.evaluate((place: { scrollTop: number; scrollHeight: number; clientHeight: number }) => [
            place.scrollTop + place.clientHeight + 1 >= place.scrollHeight,
            place.clientHeight >= 160,
          ]),
        )
        .toEqual([true, true]);
      expect(await accessibilityViolations(page)).toEqual([]);
      // A short value is no tab stop.
      await page.keyboard.press('Escape');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      await fact(page).getByText('Work on main').waitFor();
      expect(await focused(fact(page))).toBe(true);
      expect(await value.count()).toBe(0);
    },
  );

  test('stays open over the list when a dialog above it closes', async () => {
    const { page } = await three({ viewport: { width: 640, height: 420 } });
    await rows(page).nth(1).click();
    await fact(page).getByRole('button', { name: 'Forget' }).waitFor();
    const above = page.getByRole('dialog');
    for (const opens of ['?', 'Control+k']) {
      await page.keyboard.press(opens);
      await above.waitFor();
      await page.keyboard.press('Escape');
      await above.waitFor({ state: 'hidden' });
      expect(await fact(page).isVisible()).toBe(true);
    }
  });

  test('has a preview, which Escape closes after the palette above it (R-WIN-52)', async () => {
    const { page } = await three();
    await rows(page).first().click();
    await page.keyboard.press(' ');
    await page.locator('.value-preview').getByText('Work on main').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find an action' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('combobox', { name: 'Find an action' }).count()).toBe(0);
    expect(await page.locator('.value-preview').count()).toBe(1);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.value-preview').count()).toBe(0);
  });

  test('is copied and previewed', async () => {
    const { page } = await three();
    await rows(page).nth(1).click();
    await list(page).focus();
    await page.keyboard.press('Enter');
    await says(page, 'Copied.');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('Deploy on Tuesdays');
    await page.keyboard.press(' ');
    await page.locator('.value-preview').getByText('Deploy on Tuesdays').waitFor();
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => page.locator('.value-preview').count()).toBe(0);
  });
});

describe('a lifetime', () => {
  test('is one of six presets, and its expiry is shown before it is saved', async () => {
    const { page, as } = await three();
    const editor = page.getByRole('form', { name: 'Lifetime of project/branch' });
    const ends = [
      ['1 hour', '3 June 2026 at 15:02', '2026-06-03T15:02:00.000Z'],
      ['1 day', '4 June 2026 at 14:02', '2026-06-04T14:02:00.000Z'],
      ['1 week', '10 June 2026 at 14:02', '2026-06-10T14:02:00.000Z'],
      ['30 days', '3 July 2026 at 14:02', '2026-07-03T14:02:00.000Z'],
      ['90 days', '1 September 2026 at 14:02', '2026-09-01T14:02:00.000Z'],
      ['1 year', '3 June 2027 at 14:02', '2027-06-03T14:02:00.000Z'],
    ] as const;
    for (const [name, end, at] of ends) {
      await rows(page).filter({ hasText: 'branch' }).click();
      await fact(page).getByRole('button', { name: 'Change lifetime' }).click();
      await editor.getByRole('radio', { name }).check();
      expect(await editor.locator('output').textContent()).toBe(`Expires ${end}`);
      await editor.getByRole('button', { name: 'Save' }).click();
      await expect.poll(async () => (await as()('recall', { key: 'project/branch' })).expires_at).toBe(at);
      await expect.poll(() => editor.count()).toBe(0);
    }
  });

  test('can end on a day within a year', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await page.keyboard.press('e');
    const editor = page.getByRole('form', { name: 'Lifetime of project/branch' });
    const day = editor.getByLabel('Day', { exact: true });
    expect([await day.getAttribute('min'), await day.getAttribute('max')]).toEqual(['2026-06-04', '2027-06-03']);
    await day.fill('2026-12-24');
    expect(await editor.locator('output').textContent()).toMatch('Expires 24 December 2026 at 14:02');
    await editor.getByRole('button', { name: 'Save' }).click();
    await says(page, 'Expires 24 December 2026.');
    expect((await as()('recall', { key: 'project/branch' })).expires_at).toMatch(/^2026-12-24T14:0/);
  });

  test('stays unchanged when the editor is closed, and the focus returns', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await list(page).focus();
    await page.keyboard.press('e');
    await page.getByRole('form', { name: /Lifetime/ }).waitFor();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('form', { name: /Lifetime/ }).count()).toBe(0);
    expect(await focused(list(page))).toBe(true);
    expect((await as()('recall', { key: 'project/branch' })).expires_at).toBe('2026-06-03T19:02:00.000Z');
  });

  test('that is rejected shows the error', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await page.keyboard.press('e');
    const editor = page.getByRole('form', { name: /Lifetime/ });
    await as()('forget', { scope: 'key:project/branch' });
    await editor.getByRole('button', { name: 'Save' }).click();
    await editor.getByRole('alert').getByText('No fact is stored under this key').waitFor();
    expect((await as()('recall', { key: 'project/deploy' })).expires_at).toBe('2026-09-01T14:02:00.000Z');
  });
});

describe('an edit', () => {
  const editing = async (page: Page, key: string) => {
    await rows(page).filter({ hasText: key }).click();
    await fact(page).getByRole('button', { name: 'Edit' }).click();
    const editor = page.getByRole('form', { name: /^Edit / });
    await editor.waitFor();
    return editor;
  };

  test('changes value, category and tags, and keeps the remaining lifetime', async () => {
    const { page, as } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('Work on branches');
    await editor.getByLabel('Category').fill('preferences');
    await editor.getByLabel(/^Tags/).fill('git\n with, comma \n\n');
    await editor.getByRole('button', { name: 'Save' }).click();
    await fact(page).locator('pre').getByText('Work on branches').waitFor();
    expect(await as()('recall', { key: 'project/branch' })).toMatchObject({
      value: 'Work on branches',
      category: 'preferences',
      tags: ['git', 'with, comma'],
      client: 'window',
      expires_at: expect.stringMatching(/^2026-06-03T19:0/) as string,
    });
  });

  test('keeps a lifetime that was changed a moment before, and so does a restored version (R-STAY-03)', async () => {
    const { page, as } = await three({
      // The window receives no change events.
      before: (fresh: Page) => fresh.route('**/window/events', (route) => route.abort()),
      allowedErrors: /ERR_FAILED/,
    });
    const editor = await editing(page, 'deploy');
    const { expires_at: end } = await as()('patch', { key: 'project/deploy', ttl_seconds: 365 * 86_400 });
    await editor.getByLabel('Value').fill('Deploy on Mondays');
    await editor.getByRole('button', { name: 'Save' }).click();
    await editor.waitFor({ state: 'hidden' });
    expect(await as()('recall', { key: 'project/deploy' })).toMatchObject({ value: 'Deploy on Mondays', expires_at: end });
    await fact(page).getByRole('button', { name: 'History' }).click();
    await fact(page).getByRole('button', { name: 'Restore the version by codex' }).click();
    await expect.poll(async () => (await as()('recall', { key: 'project/deploy' })).value).toBe('Deploy on Tuesdays');
    expect((await as()('recall', { key: 'project/deploy' })).expires_at).toBe(end);
  });

  test('of the tags alone keeps the value', async () => {
    const { page, as } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel(/^Tags/).fill('git');
    await editor.getByRole('button', { name: 'Save' }).click();
    await fact(page).getByRole('button', { name: 'git' }).waitFor();
    expect(await as()('recall', { key: 'project/branch' })).toMatchObject({ value: 'Work on main', tags: ['git'] });
  });

  test('that is rejected names the fields by their labels and keeps the text (R-WIN-42)', async () => {
    const { page } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('kept');
    await editor.getByLabel('Category').fill('pack_history');
    await editor.getByRole('button', { name: 'Save' }).click();
    const alert = editor.getByRole('alert');
    expect(await alert.textContent()).toBe('Category is reserved; choose another category.');
    expect(await editor.getByLabel('Value').inputValue()).toBe('kept');
    await editor.getByLabel('Category').fill('notes');
    await editor.getByLabel(/^Tags/).fill(`tools\n${'x'.repeat(65)}`);
    await editor.getByRole('button', { name: 'Save' }).click();
    await alert.getByText('Tags: number 2 must have 1 to 64 characters; shorten it or leave it out.').waitFor();
  });

  test('survives writes by others and shows them (R-WIN-11)', async () => {
    const { page, as } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await as({ client: 'codex' })('remember', { key: 'project/branch', value: 'Work on trunk', category: 'conventions' });
    await editor.getByText('codex changed this fact while you were editing').waitFor();
    expect(await editor.locator('ins').allTextContents()).toEqual(['trunk']);
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
    await editor.getByRole('button', { name: 'Keep mine' }).click();
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
    await editor.getByRole('button', { name: 'Save' }).click();
    await fact(page).locator('pre').getByText('What I think').waitFor();
    expect((await as()('history', { key: 'project/branch' })).versions.map(({ value }) => value)).toEqual([
      'Work on trunk',
      'Work on main',
    ]);
  });

  test('can be replaced by the version of another client', async () => {
    const { page, as } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await as()('remember', { key: 'project/branch', value: 'Work on trunk' });
    await editor.getByRole('button', { name: 'Use theirs' }).click();
    expect(await editor.getByLabel('Value').inputValue()).toBe('Work on trunk');
  });

  test('survives the deletion of its fact and can store it again (R-WIN-11)', async () => {
    const { page, as } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await as()('forget', { scope: 'facts' });
    await editor.getByText('This fact was deleted while you were editing').waitFor();
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
    await editor.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(async () => (await as()('list', { values: true })).facts.map(({ value }) => value))
      .toEqual(['What I think']);
  });

  test('does not report a deletion when the fact cannot be read', async () => {
    const { page, as } = await three({ allowedErrors: /ERR_FAILED/ });
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await page.route('**/window/call/recall?*', (route) => route.abort());
    // A change makes the window read the fact again.
    await as()('forget', { scope: 'category:decisions' });
    await fact(page).getByRole('alert').waitFor();
    expect(await editor.getByText('This fact was deleted while you were editing').count()).toBe(0);
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
  });

  test('is hidden during a lock, and shown again after the unlock if it has changes (R-WIN-11, R-LOCK-02)', async () => {
    const { page, as } = await three();
    const admin = as({ scopes: new Set(['admin', 'memory:read']) });
    await editing(page, 'deploy');
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await admin('lock', {});
    await page.getByText('This memory is locked.').waitFor();
    await expect.poll(() => page.getByRole('textbox').count()).toBe(0);
    expect(await page.content()).not.toMatch(/branch|deploy|Tuesdays|Work on main/);
    await admin('unlock', {});
    await editor.waitFor();
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
    expect(await chosen(page).locator('.key').textContent()).toBe('project/branch');
    await rows(page).filter({ hasText: 'deploy' }).click();
    await fact(page).locator('pre').getByText('Deploy on Tuesdays').waitFor();
  });

  test('is marked in the list and stays while another page is open (R-WIN-11)', async () => {
    const { page } = await three();
    await (await editing(page, 'deploy')).getByLabel('Value').fill('What I think');
    await page.getByRole('button', { name: 'Activity' }).click();
    await page.keyboard.press('Control+1');
    await rows(page).first().waitFor();
    expect(await rows(page).locator('.unsaved').allTextContents()).toEqual(['unsaved']);
    expect(await chosen(page).textContent()).toBe('project/deployunsaved90 d');
    expect(await page.getByRole('form', { name: 'Edit project/deploy' }).getByLabel('Value').inputValue()).toBe('What I think');
    expect(await focused(search(page))).toBe(true);
    await page.getByRole('button', { name: 'Discard' }).click();
    await fact(page).locator('pre').getByText('Deploy on Tuesdays').waitFor();
    expect(await rows(page).locator('.unsaved').count()).toBe(0);
  });

  test('stays while another fact is selected (R-WIN-11)', async () => {
    const { page } = await three();
    const editor = await editing(page, 'branch');
    await editor.getByLabel('Value').fill('What I think');
    await rows(page).nth(1).click();
    await fact(page).getByText('Deploy on Tuesdays').waitFor();
    await page.getByRole('button', { name: 'decisions 1' }).click();
    await shows(page, ['project/deploy']);
    await page.getByRole('button', { name: 'All 3' }).click();
    await rows(page).filter({ hasText: 'branch' }).click();
    expect(await editor.getByLabel('Value').inputValue()).toBe('What I think');
    await editor.getByRole('button', { name: 'Discard' }).click();
    await fact(page).locator('pre').getByText('Work on main').waitFor();
  });
});

describe('forgetting', () => {
  test('deletes one fact, selects the next, and offers Undo for eight seconds (R-FORGET-13)', async () => {
    const { page, as, advance: pass } = await three();
    await rows(page).first().click();
    await list(page).focus();
    await page.keyboard.press('Backspace');
    await says(page, 'Forgotten.');
    await shows(page, ['project/deploy', 'preferences/editor']);
    expect(await chosen(page).locator('.key').textContent()).toBe('project/deploy');
    await expect(as()('recall', { key: 'project/branch' })).rejects.toMatchObject({ code: 'not_found' });
    await pass(7 * SECOND);
    expect(await toast(page).getByRole('button', { name: 'Undo' }).count()).toBe(1);
    await pass(SECOND);
    await expect.poll(() => toast(page).getByRole('button', { name: 'Undo' }).count()).toBe(0);
    await page.keyboard.press('z');
    await page.waitForTimeout(100);
    await shows(page, ['project/deploy', 'preferences/editor']);
  });

  test('is undone with value and remaining lifetime (R-FORGET-13)', async () => {
    const { page, as, advance: pass } = await three();
    await pass(2 * HOUR);
    await rows(page).first().click();
    await page.keyboard.press('Backspace');
    await says(page, 'Forgotten.');
    await pass(5 * SECOND);
    await page.keyboard.press('z');
    await says(page, 'Restored');
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
    const again = await as()('recall', { key: 'project/branch' });
    expect(again).toMatchObject({ value: 'Work on main', category: 'conventions', tags: [] });
    expect(Math.abs(Date.parse(again.expires_at) - Date.parse('2026-06-03T19:02:00Z'))).toBeLessThan(10 * SECOND);
  });

  test('is undone at the same place among facts of one millisecond, and selects the fact again (R-USE-05)', async () => {
    const { page } = await openWindow({
      clock: manualClock(),
      async seed(as) {
        for (const key of ['a', 'b', 'c', 'd', 'e']) await as()('remember', { key, value: 'v' });
      },
    });
    const all = ['e', 'd', 'c', 'b', 'a'];
    const selected = () => chosen(page).locator('.key').textContent();
    await shows(page, all);
    await rows(page).nth(1).click();
    for (const left of [
      ['e', 'c', 'b', 'a'],
      ['e', 'b', 'a'],
    ]) {
      await page.keyboard.press('Backspace');
      await shows(page, left);
    }
    expect(await selected()).toBe('b');
    await page.keyboard.press('z');
    await shows(page, ['e', 'c', 'b', 'a']);
    await expect.poll(selected).toBe('c');
    await page.keyboard.press('z');
    await shows(page, all);
    await expect.poll(selected).toBe('d');
    // A row that the owner selected in the meantime stays selected.
    await page.keyboard.press('Backspace');
    await shows(page, ['e', 'c', 'b', 'a']);
    await rows(page).last().click();
    await page.keyboard.press('z');
    await shows(page, all);
    await says(page, 'Restored');
    expect(await selected()).toBe('a');
  });

  test('is undone with author and times, and is no write by the window (R-FORGET-16)', async () => {
    const { page, as } = await three();
    const before = await as()('recall', { key: 'project/deploy' });
    await rows(page).nth(1).click();
    await page.keyboard.press('Backspace');
    await says(page, 'Forgotten.');
    await page.keyboard.press('z');
    await says(page, 'The fact was restored with its author and history.');
    await expect.poll(() => rows(page).count()).toBe(3);
    expect(await as()('recall', { key: 'project/deploy' })).toEqual(before);
    const undone = await as()('undo', { client: 'window', since: '2026-06-03T00:00:00Z' });
    expect(undone).toMatchObject({ removed: 0, restored: 0, skipped: [] });
  });

  test('is undone with Z on every page, in every keyboard layout (R-SEEK-02)', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await page.keyboard.press('Backspace');
    await says(page, 'Forgotten.');
    await page.getByRole('button', { name: 'Activity' }).click();
    await page.getByRole('main', { name: 'Activity' }).waitFor();
    const type = (key: string, code: string, more: object = {}) =>
      page.locator('body').dispatchEvent('keydown', { key, code, ...more });
    await type('ö', 'Semicolon');
    await type('é', 'Digit2');
    expect(await toast(page).getByRole('button', { name: 'Undo' }).count()).toBe(1);
    await type('я', 'KeyZ');
    await says(page, 'Restored');
    expect(await as()('recall', { key: 'project/branch' })).toMatchObject({ value: 'Work on main' });
    await type('Л', 'KeyK', { ctrlKey: true });
    await page.getByRole('dialog', { name: 'Actions' }).waitFor();
  });

  test('of several facts is undone one by one (R-USE-02)', async () => {
    const { page } = await three();
    await rows(page).first().click();
    for (const left of [2, 1]) {
      await page.keyboard.press('Backspace');
      await expect.poll(() => rows(page).count()).toBe(left);
    }
    await page.keyboard.press('Enter');
    await says(page, 'Copied.');
    expect(await toast(page).locator('bdi').allTextContents()).toEqual(['project/deploy', 'project/branch']);
    for (const _ of [1, 2]) {
      await page.keyboard.press('z');
      await says(page, 'Restored');
    }
    await shows(page, ['project/branch', 'project/deploy', 'preferences/editor']);
  });

  test('cannot be undone after a lock, and says so (R-FORGET-13)', async () => {
    const { page, as } = await three();
    const admin = as({ scopes: new Set(['admin']) });
    await rows(page).first().click();
    await page.keyboard.press('Backspace');
    await says(page, 'Forgotten.');
    await admin('lock', {});
    await page.locator('.banner').waitFor();
    await page.keyboard.press('z');
    await says(page, 'It is too late to undo this');
    expect(await toast(page).getByRole('button', { name: 'Try again' }).count()).toBe(0);
  });

  test('deletes only one fact while the key is held down (R-USE-02)', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    for (let times = 0; times < 4; times += 1) await page.keyboard.down('Backspace');
    await says(page, 'Forgotten.');
    await page.waitForTimeout(200);
    expect((await as()('status', {})).facts).toBe(2);
  });

  test('does not extend the lifetime when it is undone (R-FORGET-16)', async () => {
    const clock = manualClock();
    const { page, as, advance: pass } = await three({ clock });
    await pass(4.5 * HOUR);
    await rows(page).first().click();
    await page.keyboard.press('Backspace');
    await toast(page).getByRole('button', { name: 'Undo' }).click();
    await says(page, 'Restored');
    const left = Date.parse((await as()('recall', { key: 'project/branch' })).expires_at) - clock.now();
    expect(Math.abs(left - HOUR / 2)).toBeLessThan(5 * SECOND);
  });

  test('of many facts shows a preview first', async () => {
    const { page, as } = await three();
    await search(page).fill('tag:tools');
    await shows(page, ['project/deploy', 'preferences/editor']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Shift+Backspace');
    const dialog = page.getByRole('dialog', { name: 'Forget all facts tagged tools?' });
    await dialog.getByText("2 facts will be deleted, including all earlier versions. You can't undo this.").waitFor();
    await expect.poll(() => dialog.getByRole('listitem').allTextContents()).toEqual(['project/deploy', 'preferences/editor']);
    expect(await focused(dialog.getByRole('button', { name: 'Cancel' }))).toBe(true);
    expect((await as()('status', {})).facts).toBe(3);
    await dialog.getByRole('button', { name: 'Forget' }).click();
    await says(page, '2 facts forgotten.');
    expect((await as()('list', {})).facts.map(({ key }) => key)).toEqual(['project/branch']);
  });

  test('of many facts runs once on a double click', async () => {
    const { page } = await three();
    await page.getByRole('button', { name: 'decisions 1' }).click();
    await shows(page, ['project/deploy']);
    await page.keyboard.press('Shift+Backspace');
    await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).dblclick();
    await says(page, '1 fact forgotten.');
    await page.waitForTimeout(200);
    expect(await toast(page).innerText()).toBe('1 fact forgotten.');
  });

  test('of all facts asks for the name of the memory (R-WIN-12)', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await page.keyboard.press('Shift+Backspace');
    const dialog = page.getByRole('dialog', { name: 'Forget all facts of me?' });
    await dialog.getByText('3 facts will be deleted').waitFor();
    const forget = dialog.getByRole('button', { name: 'Forget' });
    expect(await forget.isDisabled()).toBe(true);
    await dialog.getByLabel('Type me to confirm').fill('mine');
    expect(await forget.isDisabled()).toBe(true);
    await page.keyboard.press('Enter');
    expect((await as()('status', {})).facts).toBe(3);
    await dialog.getByLabel('Type me to confirm').fill('me');
    await forget.click();
    await page.getByText('No facts yet.').waitFor();
    expect((await as()('status', {})).facts).toBe(0);
  });

  test('of many facts is not offered for Expiring soon or search results', async () => {
    const { page } = await three();
    await page.getByRole('button', { name: 'Expiring soon' }).click();
    await shows(page, ['project/branch']);
    await rows(page).first().click();
    await page.keyboard.press('Shift+Backspace');
    await search(page).fill('main');
    await shows(page, ['project/branch']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Shift+Backspace');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });
});

test('a click opens a fact even if the window scrolls as a whole (R-WIN-09)', async () => {
  const { page } = await three({ fontSize: 32 });
  await rows(page).nth(2).click();
  await fact(page).getByRole('button', { name: 'Back' }).waitFor();
  expect(await fact(page).getByRole('heading').first().textContent()).toBe('preferences/editor');
});

test('the lifetime editor opens next to its row or button', async () => {
  const { page } = await three();
  await rows(page).nth(1).click();
  const editor = page.getByRole('form', { name: /^Lifetime/ });
  /** The vertical distance between the editor and an element; 0 or less if they touch. */
  const gap = async (place: Locator): Promise<number> => {
    const [one, other] = [await editor.boundingBox(), await place.boundingBox()];
    if (!one || !other) throw new Error('One of the elements is hidden.');
    return Math.max(one.y - (other.y + other.height), other.y - (one.y + one.height));
  };
  const button = fact(page).getByRole('button', { name: 'Change lifetime' });
  await button.click();
  expect(Math.abs(await gap(button))).toBeLessThan(8);
  await page.keyboard.press('Escape');
  await rows(page).nth(1).click();
  await page.keyboard.press('e');
  expect(Math.abs(await gap(chosen(page)))).toBeLessThan(8);
});

describe('when something is wrong', () => {
  test('a missing key is reported once, with the remedy', async () => {
    const { page, served } = await three();
    await served.perform({ subject: 'me', client: 'x', transport: 'x', token: '', scopes: new Set(['admin']) }, 'lock', {});
    await page.reload();
    await page.locator('.banner').getByText('helmdeck-memory unlock').waitFor();
    await page.getByText('Facts are hidden until the key is available.').waitFor();
    expect(await said(page).textContent()).toBe('');
  });

  test('after the program ends, the error is shown and the loaded list stays', async () => {
    const { page, served } = await three({ allowedErrors: /Failed to load resource|ERR_/ });
    await rows(page).first().waitFor();
    await served.listener.close();
    await rows(page).first().click();
    await fact(page).getByRole('alert').getByText('Helmdeck Memory is not running').waitFor();
    expect(await keys(page)).toEqual(['project/branch', 'project/deploy', 'preferences/editor']);
  });
});

describe('the palette', () => {
  test('lists every action with its key, and runs the selected one', async () => {
    const { page } = await three();
    await rows(page).nth(1).click();
    await page.keyboard.press('Control+k');
    const palette = page.getByRole('dialog', { name: 'Actions' });
    const actions = await palette.getByRole('option').allInnerTexts();
    expect(actions.map((text) => text.replace(/\s+/g, ' ').trim())).toEqual([
      'Search facts /',
      'Filter by tag or client T',
      'Copy value ⏎',
      'Preview value Space',
      'Change lifetime E',
      'Edit value, category and tags V',
      'Show or hide history H',
      'Open fact →',
      'Forget fact ⌫',
      'Back to the list ←',
      'Forget all facts… ⇧⌫',
      'Sort by expiry S',
      'Go to Facts Ctrl 1',
      'Go to Inbox Ctrl 7',
      'Go to Activity Ctrl 2',
      'Go to Learned Ctrl 3',
      'Go to Packs Ctrl 4',
      'Go to Connect Ctrl 5',
      'Go to Embeddings Ctrl 6',
      'Go to Settings Ctrl ,',
      'Undo Z',
      'Keyboard shortcuts ?',
    ]);
    await page.keyboard.type('life');
    expect(await palette.getByRole('option').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.getByRole('form', { name: 'Lifetime of project/deploy' }).waitFor();
  });

  test('lists all shortcuts and restores the focus', async () => {
    const { page } = await three();
    await rows(page).first().click();
    await list(page).focus();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Change lifetime').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(await focused(list(page))).toBe(true);
  });

  test('accepts letters with Caps Lock', async () => {
    const { page } = await three();
    await rows(page).first().click();
    await page.evaluate(`dispatchEvent(new KeyboardEvent('keydown', { key: 'E' }))`);
    await expect.poll(() => page.getByRole('form', { name: 'Lifetime of project/branch' }).count()).toBe(1);
  });

  test('ignores keys of an input method', async () => {
    const { page } = await three();
    await search(page).fill('とうきょう');
    for (const key of ['Enter', 'Escape', 'ArrowDown']) {
      await search(page).dispatchEvent('keydown', { key, isComposing: true });
    }
    expect(await focused(search(page))).toBe(true);
    expect(await search(page).inputValue()).toBe('とうきょう');
  });

  test('ignores single letters in a text field', async () => {
    const { page, as } = await three();
    await rows(page).first().click();
    await search(page).focus();
    await page.keyboard.type('zve?/');
    expect(await search(page).inputValue()).toBe('zve?/');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect((await as()('status', {})).facts).toBe(3);
  });
});
