import { expect, test } from 'vitest';
import * as z from 'zod';
import { manualClock, SECOND } from '../support/clock.ts';
import { aPack } from '../support/packs.ts';
import { openWindow } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

const writer = aPack(() => ({ said: 'done', findings: [{ code: 'too-long', severity: 'warning' }] }), {
  input: z.strictObject({ audience: z.string().default('all') }),
});
const steps = [{ id: 'first', pack: 'test.echo', input: {} }];

const opened = (runs: number) =>
  openWindow({
    clock: manualClock(),
    packs: { packs: [writer] },
    async seed(as) {
      for (let run = 0; run < runs; run += 1) await as()('runPack', { name: 'test.echo', input: { audience: 'engineers' } });
    },
  });

test('habits of all agents are shown, and follow new runs', async () => {
  const { page, as } = await opened(3);
  await goTo(page, 'Learned');
  await page.getByRole('region', { name: 'Packs' }).getByText('3 times, last 3 June 2026 at 14:02').waitFor();
  await page.getByText('test.echo usually with audience engineers').waitFor();
  expect(await page.getByRole('region', { name: 'Latest runs' }).getByRole('listitem').count()).toBe(3);
  await as()('runPack', { name: 'test.echo' });
  await page.getByRole('region', { name: 'Packs' }).getByText('4 times').waitFor();
});

test('without runs, the page says why it is empty and has no Forget button', async () => {
  const { page } = await opened(0);
  await goTo(page, 'Learned');
  await page.getByText('Nothing has run yet, or its record has expired or been forgotten.').waitFor();
  expect(await page.getByRole('button', { name: /^Forget/ }).count()).toBe(0);
});

test('the latest runs are shown first, and all on request', async () => {
  const { page } = await opened(30);
  await goTo(page, 'Learned');
  const runs = page.getByRole('region', { name: 'Latest runs' }).getByRole('listitem');
  await expect.poll(() => runs.count()).toBe(20);
  await page.getByRole('button', { name: 'Show all 30' }).click();
  expect(await runs.count()).toBe(30);
});

test('habits from packs are forgotten after a preview, and those from pipelines stay (R-WIN-20)', async () => {
  const { page, as, advance: pass } = await opened(2);
  await as()('createPipeline', { id: 'weekly', steps });
  const { run_id: runId } = await as()('runPipeline', { id: 'weekly' });
  await expect.poll(async () => (await as()('pipelineRun', { run_id: runId })).status).toBe('succeeded');
  await pass(SECOND);
  await goTo(page, 'Learned');
  await page.getByRole('button', { name: 'Forget what was learned from packs…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Forget what was learned from packs?' });
  await dialog.getByText("3 records will be deleted. You can't undo this.").waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  expect((await as()('myDefaults', {})).packs).toHaveLength(1);
  await page.getByRole('button', { name: 'Forget what was learned from packs…' }).click();
  await dialog.getByRole('button', { name: 'Forget', exact: true }).click();
  await toast(page).getByText('3 records forgotten.').waitFor();
  const left = await as()('myDefaults', {});
  expect([left.packs.length, left.pipelines.length]).toEqual([0, 1]);
  await expect.poll(() => page.getByRole('region', { name: 'Packs' }).count()).toBe(0);
});
