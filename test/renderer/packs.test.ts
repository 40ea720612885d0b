import { describe, expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { Failure } from '../../src/contract/failure.ts';
import { manualClock } from '../support/clock.ts';
import { aPack } from '../support/packs.ts';
import { openWindow, type WindowOptions } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

const echo = aPack(({ input }) => ({ said: JSON.stringify(input) }), {
  input: z.strictObject({
    what: z.string().describe('What to say.'),
    times: z.int().default(1),
    loud: z.boolean().optional(),
    tone: z.enum(['calm', 'glad']).optional(),
    words: z.array(z.string()).optional(),
    more: z.object({ a: z.number() }).optional(),
  }),
  memory: { cache: true, ttl: 3600 },
});
const unavailable = aPack(() => ({ said: '' }), {
  name: 'test.away',
  title: 'Away',
  unavailable: () => 'There is no credential; set one.',
});
const failing = aPack(
  () => {
    throw new Failure('handler_failed', 'The service is asleep; try again tomorrow.');
  },
  { name: 'test.failing', title: 'Failing' },
);

const opened = async (over: WindowOptions = {}) => {
  const all = await openWindow({
    clock: manualClock(),
    packs: { packs: [echo, unavailable, failing], skipped: [{ name: 'mine.broken', why: 'Its file is no module; mend it.' }] },
    ...over,
  });
  await goTo(all.page, 'Packs');
  return all;
};

describe('packs', () => {
  test('are listed with the reasons why some cannot run or were skipped', async () => {
    const { page } = await opened();
    const away = page.getByRole('listitem').filter({ hasText: 'test.away' });
    await away.getByText("Can't run: There is no credential; set one.").waitFor();
    const skipped = page.getByRole('region', { name: 'Skipped' });
    expect(await skipped.getByRole('listitem').innerText()).toMatch(/mine\.broken\s+Its file is no module; mend it\./);
  });

  test('lead back to the list by the sidebar, its shortcut, Escape and Back (R-WIN-53)', async () => {
    const { page } = await opened();
    const title = () => page.getByRole('main').getByRole('heading', { level: 1 }).textContent();
    const ways = [
      () => page.getByRole('navigation').getByRole('button', { name: 'Packs' }).click(),
      () => page.keyboard.press('Control+4'),
      () => page.keyboard.press('Escape'),
      () => page.goBack(),
    ];
    for (const leave of ways) {
      await page.getByRole('button', { name: 'Echo' }).click();
      await page.getByRole('heading', { name: 'Echo', level: 1 }).waitFor();
      await leave();
      await expect.poll(title).toBe('Packs');
    }
    await page.getByRole('button', { name: 'Echo' }).click();
    await page.getByRole('heading', { name: 'Echo', level: 1 }).waitFor();
    await page.reload();
    await expect.poll(title).toBe('Echo');
  });

  test('run from a form generated from their schema, and show cached results as such', async () => {
    const { page } = await opened();
    await page.getByRole('button', { name: 'Echo' }).click();
    await page.getByRole('textbox', { name: 'what (required)' }).fill('hello');
    await page.getByRole('spinbutton', { name: 'times' }).fill('2');
    await page.getByRole('combobox', { name: 'loud' }).selectOption('no');
    await page.getByRole('combobox', { name: 'tone' }).selectOption('glad');
    await page.getByRole('textbox', { name: 'words' }).fill('one\n\ntwo');
    await page.getByRole('textbox', { name: 'more' }).fill('{"a": 1}');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Finished in 0 ms.').waitFor();
    const said = JSON.parse((await page.locator('.output').textContent()) ?? '') as { said: string };
    expect(JSON.parse(said.said)).toEqual({
      what: 'hello',
      times: 2,
      loud: false,
      tone: 'glad',
      words: ['one', 'two'],
      more: { a: 1 },
    });
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Cached result of an earlier run. Cached until 3 June 2026 at 15:02.').waitFor();
  });

  test('run with JSON, which starts from the filled-in form', async () => {
    const { page } = await opened();
    await page.getByRole('button', { name: 'Echo' }).click();
    await page.getByRole('textbox', { name: 'what (required)' }).fill('hello');
    await page.getByRole('button', { name: 'Write JSON' }).click();
    const json = page.getByRole('textbox', { name: 'Input as JSON' });
    expect(JSON.parse(await json.inputValue())).toEqual({ what: 'hello' });
    await json.fill('[1]');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('alert').getByText('The input must be a JSON object').waitFor();
    await json.fill('{"what": 7}');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('alert').getByText(/what/).waitFor();
    await json.fill('{"what": "bye"}');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('.output').getByText('bye').waitFor();
  });

  test('can be cancelled (R-WIN-40)', async () => {
    const heard = Promise.withResolvers<void>();
    const slow = aPack(({ signal }) => new Promise(() => signal.addEventListener('abort', () => heard.resolve())), {
      name: 'test.slow',
      title: 'Slow',
    });
    const { page } = await opened({ packs: { packs: [slow] } });
    await page.getByRole('button', { name: 'Slow' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Running…').waitFor();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByRole('alert').getByText('You cancelled this run.').waitFor();
    await heard.promise;
    await expect.poll(() => page.getByRole('button', { name: 'Cancel the run' }).count()).toBe(0);
  });

  test('show why they failed', async () => {
    const { page } = await opened();
    await page.getByRole('button', { name: 'Failing' }).click();
    await page.getByRole('textbox', { name: 'what' }).fill('x');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').textContent()).toMatch(/asleep|failed/);
  });

  test('have their cache and records cleared after a preview (R-WIN-20)', async () => {
    const { page, as } = await opened();
    await as()('runPack', { name: 'test.echo', input: { what: 'x' } });
    await as()('remember', { key: 'stays', value: 'x' });
    await page.getByRole('button', { name: 'Echo' }).click();
    await page.getByRole('button', { name: 'Clear cache and records…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Clear the cache and run records of test.echo?' });
    await dialog.getByText('2 entries will be deleted.').waitFor();
    await dialog.getByRole('button', { name: 'Forget' }).click();
    await toast(page).getByText('2 entries forgotten.').waitFor();
    expect((await as()('runPack', { name: 'test.echo', input: { what: 'x' } })).cached).toBe(false);
    expect((await as()('status', {})).facts).toBe(1);
  });
});

/** All agents can run pipelines of the owner. */
const OWNER = { client: 'window', owner: true, may: ['admin'] } as const;

describe('pipelines', () => {
  const pipeline = {
    id: 'shout',
    title: 'Shout',
    inputs: [{ name: 'word', description: 'What to shout.' }],
    steps: [
      { id: 'first', pack: 'test.slow', input: { what: '${{ inputs.word }}' } },
      { id: 'second', pack: 'test.slow', input: { what: '${{ steps.first.output.said }}!' } },
    ],
  };

  /** Each step waits until the test continues it. */
  const waiting = async () => {
    const gates: (() => void)[] = [];
    const slow = aPack(
      async ({ input: { what }, signal }) => {
        await new Promise<void>((resolve) => {
          gates.push(resolve);
          signal.addEventListener('abort', () => resolve());
        });
        return { said: what };
      },
      { name: 'test.slow', title: 'Slow' },
    );
    const all = await openWindow({ packs: { packs: [slow] }, seed: (as) => as(OWNER)('createPipeline', pipeline) });
    onTestFinished(() => gates.forEach((open) => open()));
    const next = async (): Promise<void> => {
      await expect.poll(() => gates.length).toBeGreaterThan(0);
      gates.shift()?.();
    };
    await goTo(all.page, 'Packs');
    await all.page.getByRole('button', { name: 'Shout' }).click();
    return { ...all, next };
  };

  test('run, and show the progress of each step', async () => {
    const { page, next } = await waiting();
    await page.getByRole('textbox', { name: 'word (required)' }).fill('hey');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Running…').waitFor();
    const step = (name: string) =>
      page.getByRole('region', { name: 'Run', exact: true }).getByRole('listitem').filter({ hasText: name });
    await step('second').getByText('waiting').waitFor();
    await next();
    await step('first')
      .getByText(/succeeded/)
      .waitFor();
    await next();
    await page.getByText(/^Finished in/).waitFor();
    expect(await step('second').locator('.output').textContent()).toMatch('hey!');
    expect(await page.getByRole('button', { name: 'Cancel the run' }).count()).toBe(0);
  });

  test('can be cancelled', async () => {
    const { page } = await waiting();
    await page.getByRole('textbox', { name: 'word (required)' }).fill('hey');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByText('The run was cancelled.').waitFor();
    expect(await page.getByRole('region', { name: 'Run', exact: true }).getByRole('listitem').nth(1).innerText()).toMatch(
      'skipped',
    );
  });

  test('list the runs of all callers with their progress and steps (R-WIN-44)', async () => {
    const { page, as, next } = await waiting();
    const runs = page.getByRole('region', { name: 'Runs', exact: true });
    await runs.getByText('No runs in the last week.').waitFor();
    await as({ client: 'codex' })('createPipeline', { ...pipeline, id: 'other', title: 'Other' });
    await as({ client: 'codex' })('runPipeline', { id: 'shout', inputs: { word: 'hey' } });
    const row = runs.getByRole('list', { name: 'Runs' }).locator('> li');
    const status = row.first().locator('> span').nth(1);
    await expect.poll(() => status.textContent()).toBe('running');
    await row.getByRole('button', { expanded: false }).click();
    await row.getByText('Running…').waitFor();
    await next();
    await next();
    await row.getByText(/^Finished in/).waitFor();
    await expect.poll(() => status.textContent()).toMatch(/^succeeded, [\d,]+ ms$/);
    expect(await row.locator('.output').last().textContent()).toMatch('hey!');
    await as({ client: 'codex' })('runPipeline', { id: 'other', inputs: { word: 'x' } });
    await as({ client: 'codex' })('runPipeline', { id: 'shout', inputs: { word: 'y' } });
    await expect.poll(() => row.count()).toBe(2);
    await row.nth(1).getByRole('button', { expanded: true }).click();
    expect(await row.nth(1).locator('.output').count()).toBe(0);
  });

  test('name the fields in errors by their labels (R-WIN-42)', async () => {
    const { page } = await waiting();
    await page.getByRole('button', { name: 'Write JSON' }).click();
    await page.getByRole('textbox', { name: 'Input as JSON' }).fill('{}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(() => page.getByRole('alert').allTextContents()).toEqual(['word is missing; send it.']);
  });

  test('show their author, and run after the owner adopts them (R-DEFINE-04)', async () => {
    const { page, as } = await openWindow({
      packs: { packs: [aPack(({ input: { what } }) => ({ said: what }), { name: 'test.slow', title: 'Slow' })] },
      seed: (all) => all({ client: 'codex' })('createPipeline', { ...pipeline, description: 'Line one.\nLine two.' }),
    });
    await goTo(page, 'Packs');
    await page.getByText('shout, 2 steps, by codex').waitFor();
    await page.getByText('Line one. Line two.').waitFor();
    await page.getByRole('button', { name: 'Shout' }).click();
    await page.getByText(/The author of this pipeline, codex, has no valid token/).waitFor();
    await page.getByRole('button', { name: 'Adopt the pipeline…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Adopt the pipeline shout?' });
    await dialog.getByRole('button', { name: 'Adopt' }).click();
    await page.getByText(/first written by codex/).waitFor();
    expect(await page.getByRole('button', { name: 'Adopt the pipeline…' }).count()).toBe(0);
    await page.getByRole('textbox', { name: 'word (required)' }).fill('hey');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText(/^Finished in/).waitFor();
    expect(await as()('pipeline', { id: 'shout' })).toMatchObject({
      client: 'window',
      by_owner: true,
      first_written_by: 'codex',
    });
  });

  test('are deleted after a confirmation (R-WIN-20)', async () => {
    const { page, as } = await waiting();
    await page.getByRole('button', { name: 'Delete the pipeline…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete the pipeline shout?' });
    await dialog.waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect((await as()('pipelines', {})).pipelines).toHaveLength(1);
    await page.getByRole('button', { name: 'Delete the pipeline…' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No pipelines yet.').waitFor();
    expect((await as()('pipelines', {})).pipelines).toEqual([]);
  });
});
