import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ClientVerification } from '../../src/contract/client.ts';
import type { EmbeddingsReport } from '../../src/contract/embeddings.ts';
import type { MeaningState } from '../../src/contract/status.ts';
import type { ClientConnections } from '../../src/core/operations/clients-port.ts';
import type { Embeddings } from '../../src/core/operations/embeddings-port.ts';
import { type MeaningModel, type MeaningVectors, noMeaning } from '../../src/core/operations/meaning-port.ts';
import type { OwnerSettings } from '../../src/core/operations/memory.ts';
import { accessibilityViolations, openWindow } from '../support/window.ts';
import { goTo } from './pages.ts';

const HASH = 'ab12'.repeat(16);
const PULL = 'Fetch the model once.';

/** A fake sidecar whose state the test sets. */
function fakeEmbeddings(state: EmbeddingsReport['state']) {
  const asked: string[] = [];
  let report: EmbeddingsReport = {
    state,
    on: state.at !== 'off',
    adopt: false,
    adoptable: 'http://127.0.0.1:11434',
    ollama: { path: '/usr/local/bin/ollama', size: 34_567_890, sha256: HASH, approved: state.at !== 'unapproved' },
    model: { name: 'nomic-embed-text', disk: 275_000_000, memory: 600_000_000 },
    free: { disk: 40_000_000_000, memory: 8_000_000_000 },
    log: [],
  };
  const become = (next: Partial<EmbeddingsReport>): void => void (report = { ...report, ...next });
  const embeddings: Embeddings = {
    model: 'nomic-embed-text',
    get state() {
      return report.state;
    },
    report: async () => report,
    async configure({ on, adopt = false }) {
      asked.push(`${on ? 'on' : 'off'}${adopt ? ' adopt' : ''}`);
      become({ on, adopt, state: on ? { at: 'unapproved', changed: false, remedy: 'Approve it.' } : { at: 'off' } });
    },
    async approve(hash) {
      asked.push(`approve ${hash}`);
      become({ state: { at: 'no_model', model: 'nomic-embed-text', remedy: PULL } });
    },
    async pull() {
      asked.push('pull');
      become({ state: { at: 'pulling', model: 'nomic-embed-text', done: 90_000_000, of: 275_000_000 } });
    },
    async cancelPull() {
      asked.push('cancel');
      become({ state: { at: 'no_model', model: 'nomic-embed-text', remedy: PULL } });
    },
    async embed(_subject, texts) {
      return { vectors: texts.map((text) => (text.includes('ship') ? [1, 0] : [0.8, 0.6])), tokens: 4 };
    },
  };
  return { embeddings, asked, become };
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const state = (page: Page) => page.getByRole('status', { name: 'State' });

test('embeddings are turned on, approved, downloaded, tested and turned off, also by keyboard (R-EMB-06, R-WIN-09)', async () => {
  const { embeddings, asked, become } = fakeEmbeddings({ at: 'off' });
  const { page } = await openWindow({ embeddings });
  await page.keyboard.press('Control+6');
  await state(page).getByText('Off', { exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('Turn on Ollama');
  await page.keyboard.press('Enter');

  await press(page, 'Approve Ollama…');
  const approval = page.getByRole('dialog', { name: 'Allow Helmdeck Memory to start this Ollama?' });
  for (const shown of ['/usr/local/bin/ollama', '34,567,890 bytes', HASH]) await approval.getByText(shown).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await approval.getByRole('button', { name: 'Approve' }).click();

  await press(page, 'Download the model…');
  const fetching = page.getByRole('dialog', { name: 'Download the model nomic-embed-text?' });
  await fetching.getByText(/275 MB of disk space and about 600 MB of RAM\. Free disk space: 40 GB\. Free RAM: 8 GB\./).waitFor();
  await fetching.getByRole('button', { name: 'Download' }).click();
  await page.getByText('90 MB of 275 MB').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await press(page, 'Cancel');
  await page.getByText(PULL).waitFor();
  become({ state: { at: 'ready', model: 'nomic-embed-text', whose: 'own' }, version: '0.35.2', log: ['200 POST /api/embed'] });

  await page.getByLabel('First sentence').fill('when do we ship?');
  await page.getByLabel('Second sentence').fill('we deploy on Tuesdays');
  await page.keyboard.press('Enter');
  await page.getByRole('status', { name: 'Similarity' }).getByText('Very similar: 0.800').waitFor();
  await page.getByText('200 POST /api/embed').waitFor();
  await page.getByRole('checkbox', { name: /Use the Ollama that is running at/ }).click();
  await press(page, 'Turn off Ollama');
  await state(page).getByText('Off', { exact: true }).waitFor();
  expect(asked).toEqual(['on', `approve ${HASH}`, 'pull', 'cancel', 'on adopt', 'off']);
});

test('a failure is shown with its remedy, in light and dark (R-EMB-08, R-WIN-09)', async () => {
  const { embeddings, asked } = fakeEmbeddings({
    at: 'failed',
    trouble: 'crashed',
    why: 'Ollama exited unexpectedly.',
    remedy: 'It restarts automatically.',
    retry_at: new Date(Date.now() + 60_000).toISOString(),
  });
  const { page } = await openWindow({ embeddings });
  await goTo(page, 'Embeddings');
  await state(page).getByText('Ollama exited unexpectedly. It restarts automatically.').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await accessibilityViolations(page)).toEqual([]);
  await press(page, 'Try again to start Ollama');
  await state(page).getByText('Ollama needs your approval').waitFor();
  expect(asked).toEqual(['on']);
});

test("OpenClaw's own search is configured after a preview, and restored (R-EMB-10)", async () => {
  const { embeddings, become } = fakeEmbeddings({ at: 'no_model', model: 'nomic-embed-text', remedy: PULL });
  const ready = { at: 'ready', model: 'nomic-embed-text', whose: 'own' } as const;
  const asked: string[] = [];
  const client = 'openclaw-embeddings';
  const row = { id: client, name: 'OpenClaw', installed: true, config: '/home/ada/openclaw.json', transport: 'http' } as const;
  const never = (): Promise<never> => Promise.reject(new Error('This call is not expected.'));
  let connected = false;
  let why: string | undefined;
  let verified: ClientVerification = { works: false, why: 'The model is slow.', tools: 0 };
  const clients: ClientConnections = {
    list: async () => ({
      clients: [
        why === undefined ? { ...row, state: connected ? 'connected' : 'not_connected' } : { ...row, state: 'broken', why },
      ],
    }),
    plan: async () => ({
      client,
      basis: 'a-basis',
      files: [{ path: row.config, created: false, lines: [{ sign: '+', text: '"provider": "openai-compatible"' }] }],
      commands: [],
    }),
    async connect({ subject, basis = '' }) {
      asked.push(`connect ${client} ${basis}`);
      [connected, why] = [true, undefined];
      return { client, subject, token: 'one', expires_at: '2027-06-03T14:02:00.000Z', verified };
    },
    async disconnect() {
      asked.push('disconnect');
      connected = false;
      return { client, files: [] };
    },
    verify: never,
  };
  const { page } = await openWindow({ embeddings, clients: () => clients });
  await goTo(page, 'Embeddings');
  await page.getByText(PULL).waitFor();
  // Not offered before the embeddings are ready.
  expect(await page.getByRole('heading', { name: 'OpenClaw' }).count()).toBe(0);
  become({ state: ready });
  await press(page, 'Use for OpenClaw…');
  const dialog = page.getByRole('dialog', { name: 'Use these embeddings for OpenClaw?' });
  await dialog.getByText('+ "provider": "openai-compatible"').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Change settings' }).click();
  await page.getByText('The connection does not work yet. The model is slow.').waitFor();
  await press(page, "Restore OpenClaw's settings");
  verified = { works: true, tools: 0 };
  await press(page, 'Use for OpenClaw…');
  await dialog.getByRole('button', { name: 'Change settings' }).click();
  await page.getByRole('button', { name: "Restore OpenClaw's settings" }).waitFor();
  expect(await page.getByText('does not work yet').count()).toBe(0);

  why = 'The program has another address.';
  await goTo(page, 'Settings');
  await goTo(page, 'Embeddings');
  await page.getByText(why).waitFor();
  await press(page, 'Repair…');
  await dialog.getByRole('button', { name: 'Change settings' }).click();
  await page.getByText('The program has another address.').waitFor({ state: 'detached' });

  await press(page, 'Turn off Ollama');
  await page.getByText(/OpenClaw's search does not work until the embeddings are ready/).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await press(page, "Restore OpenClaw's settings");
  await page.getByRole('heading', { name: 'OpenClaw' }).waitFor({ state: 'detached' });
  const connect = 'connect openclaw-embeddings a-basis';
  expect(asked).toEqual([connect, 'disconnect', connect, connect, 'disconnect']);
});

test('the bundled model is ready while Ollama is off, and can be replaced by Ollama (R-MEAN-28)', async () => {
  const { embeddings, asked, become } = fakeEmbeddings({ at: 'ready', model: 'minilm-l6-v2', whose: 'bundled' });
  become({ on: false, model: { name: 'minilm-l6-v2' } });
  const { page } = await openWindow({ embeddings });
  await page.keyboard.press('Control+6');
  await state(page).getByText('Off: agents get vectors of the bundled model').waitFor();
  await page.getByLabel('First sentence').waitFor();
  await press(page, 'Turn on Ollama');
  await page.getByRole('button', { name: 'Approve Ollama…' }).waitFor();
  expect(asked).toEqual(['on']);
});

/** A fake model of search by meaning, with fake vectors. The test sets their state. */
function fakeMeaning({ installed }: { installed: boolean }) {
  const asked: string[] = [];
  const now = { choice: 'off' as MeaningModel['choice'], state: { at: 'off' } as MeaningState, done: 0, total: 0 };
  const meaningModel: MeaningModel = {
    ...noMeaning,
    installed,
    get choice() {
      return now.choice;
    },
    get state() {
      return now.state;
    },
    choose(choice) {
      asked.push(choice);
      now.choice = choice;
      now.state =
        choice === 'off'
          ? { at: 'off' }
          : choice === 'ollama'
            ? { at: 'starting', source: 'ollama' }
            : { at: 'ready', source: 'bundled', model: 'small' };
    },
  };
  const meaningVectors: MeaningVectors = {
    progress: async () => ({ done: now.done, total: now.total }),
    async rebuild() {
      asked.push('rebuild');
      now.done = 0;
    },
  };
  // In the program, a change of the setting chooses the model.
  const settings: OwnerSettings = {
    snapshot: () => ({ folder: '/home/ada', command: 'helmdeck-memory', address: '127.0.0.1:7345', settings: [] }),
    change(name, value) {
      meaningModel.choose(value as MeaningModel['choice']);
      return { name, help: '', from: 'file', changeable: true };
    },
  };
  return { meaningModel, meaningVectors, settings, asked, now };
}

const meaningState = (page: Page) => page.getByRole('status', { name: 'Search by meaning' });

test('search by meaning is turned on, shows its progress, is rebuilt and turned off (R-MEAN-26, R-MEAN-29, R-WIN-09)', async () => {
  const { asked, now, ...fake } = fakeMeaning({ installed: true });
  const { page } = await openWindow(fake);
  await goTo(page, 'Embeddings');
  await meaningState(page).getByText('Off: search compares words only').waitFor();
  expect(await page.getByRole('button', { name: 'Rebuild the vectors' }).count()).toBe(0);
  [now.done, now.total] = [3, 1200];
  await press(page, 'Turn on search by meaning');
  await meaningState(page).getByText('On, with the bundled model').waitFor();
  await page.getByText('3 of 1,200 facts have a vector. Facts without a vector are found by their words.').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  now.done = 1200;
  await page.getByText('All 1,200 facts have a vector.').waitFor();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('Rebuild the vectors');
  await page.keyboard.press('Enter');
  await page.getByText('0 of 1,200 facts have a vector.').waitFor();
  await page.getByRole('checkbox', { name: /Use the model in Ollama/ }).click();
  await meaningState(page).getByText('Waiting for Ollama…').waitFor();
  await press(page, 'Turn off search by meaning');
  await meaningState(page).getByText('Off: search compares words only').waitFor();
  expect(asked).toEqual(['bundled', 'rebuild', 'ollama', 'off']);
});

test('a failure of search by meaning is shown with its remedy, in light and dark (R-MEAN-26, R-WIN-09)', async () => {
  const { asked, now, ...fake } = fakeMeaning({ installed: true });
  now.choice = 'bundled';
  now.state = {
    at: 'failed',
    source: 'bundled',
    trouble: 'damaged',
    why: 'A file of the model was changed.',
    remedy: 'Install Helmdeck Memory again.',
  };
  const { page } = await openWindow(fake);
  await goTo(page, 'Embeddings');
  await meaningState(page).getByText('Not available: search compares words only').waitFor();
  await meaningState(page).getByText('A file of the model was changed. Install Helmdeck Memory again.').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await accessibilityViolations(page)).toEqual([]);
  await press(page, 'Try again to search by meaning');
  await meaningState(page).getByText('On, with the bundled model').waitFor();
  expect(asked).toEqual(['bundled']);
});

test('without the bundled model, search by meaning is turned on with Ollama (R-MEAN-26)', async () => {
  const { asked, now, ...fake } = fakeMeaning({ installed: false });
  const { page } = await openWindow(fake);
  await goTo(page, 'Embeddings');
  await page.getByText('The bundled model is not installed, so search by meaning needs Ollama.').waitFor();
  await press(page, 'Turn on search by meaning');
  await meaningState(page).getByText('Waiting for Ollama…').waitFor();
  expect(await page.getByRole('checkbox', { name: /Use the model in Ollama/ }).count()).toBe(0);
  now.state = { at: 'ready', source: 'ollama', model: 'bge-m3' };
  await meaningState(page).getByText('On, with bge-m3 in Ollama').waitFor();
  expect(asked).toEqual(['ollama']);
});
