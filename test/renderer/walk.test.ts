import { expect, test } from 'vitest';
import { manualClock } from '../support/clock.ts';
import { openWindow } from '../support/window.ts';

test('a fact is found, changed and forgotten by keyboard alone (R-WIN-09)', async () => {
  const { page, as } = await openWindow({
    clock: manualClock(),
    async seed(agent) {
      await agent({ client: 'codex' })('remember', { key: 'project/other', value: 'Something else', category: 'notes' });
      await agent({ client: 'claude-code' })('remember', {
        key: 'project/deploy',
        value: 'Deploy on Tuesdays',
        category: 'decisions',
      });
    },
  });
  const { keyboard } = page;
  const at = (): Promise<unknown> =>
    page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent');
  const fact = page.getByRole('complementary', { name: 'Fact' });
  const toast = page.locator('.toast');
  const recalled = () => as()('recall', { key: 'project/deploy' });

  // Find the fact and read it.
  await keyboard.type('tuesdays');
  await page.getByRole('option', { name: /deploy/ }).waitFor();
  await keyboard.press('Enter');
  await expect.poll(at).toBe('Facts');
  await fact.getByText('Deploy on Tuesdays').waitFor();
  await keyboard.press(' ');
  await page.locator('.value-preview').getByText('Deploy on Tuesdays').waitFor();
  await keyboard.press('Escape');
  expect(await page.locator('.value-preview').count()).toBe(0);
  await keyboard.press('Enter');
  await toast.getByText('Copied.').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('Deploy on Tuesdays');

  // Change its lifetime.
  await keyboard.press('e');
  await page.getByRole('form', { name: /^Lifetime/ }).waitFor();
  await keyboard.press('ArrowDown');
  await keyboard.press('Enter');
  await toast.getByText('Expires 3 June 2027.').waitFor();
  expect((await recalled()).expires_at).toBe('2027-06-03T14:02:00.000Z');
  await expect.poll(at).toBe('Facts');

  // Edit it and restore the earlier version.
  await keyboard.press('v');
  await page.getByRole('form', { name: /^Edit/ }).waitFor();
  await keyboard.press('Control+End');
  await keyboard.type(', never on Fridays');
  await keyboard.press('Control+Enter');
  await fact.locator('pre').getByText('Deploy on Tuesdays, never on Fridays').waitFor();
  await expect.poll(at).toBe('Facts');
  await keyboard.press('h');
  await fact.getByRole('button', { name: 'Restore the version by claude-code' }).waitFor();
  await keyboard.press('ArrowRight');
  await expect.poll(at).toBe('Fact');
  for (let tabs = 0; tabs < 20 && !String(await at()).startsWith('Restore'); tabs += 1) await keyboard.press('Tab');
  await keyboard.press('Enter');
  await fact.locator('pre').getByText('Deploy on Tuesdays', { exact: true }).waitFor();
  await keyboard.press('Escape');
  await expect.poll(at).toBe('Facts');

  // Forget it and undo that.
  await keyboard.press('Backspace');
  await toast.getByText('Forgotten.').waitFor();
  await expect(recalled()).rejects.toMatchObject({ code: 'not_found' });
  await keyboard.press('z');
  await toast.getByText('The fact was restored with its author and history.').waitFor();
  expect(await recalled()).toMatchObject({ value: 'Deploy on Tuesdays', expires_at: '2027-06-03T14:02:00.000Z' });

  // Forget all facts through the palette.
  await keyboard.press('/');
  await keyboard.press('Escape');
  await page.getByRole('option', { name: /other/ }).waitFor();
  await keyboard.press('Control+k');
  await keyboard.type('forget all');
  await keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Forget all facts of me?' }).getByText('2 facts will be deleted').waitFor();
  await keyboard.type('me');
  await keyboard.press('Enter');
  await page.getByText('No facts yet.').waitFor();
  expect((await as()('status', {})).facts).toBe(0);
});
