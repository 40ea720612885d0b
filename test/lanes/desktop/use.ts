import type { Check } from '../faults/lane.ts';
import { act, aFolder, anAgent, answerDialogs, askFrom, eventually, known, labels, must, press, rows, start } from './app.ts';

/** What its owner does with the window while agents work. */
export const use: readonly Check[] = [
  {
    name: 'what an agent writes appears without a reload, is found, read, forgotten and taken back (R-DESK-01, R-DESK-02)',
    async run({ folder }) {
      const { app, page, ended, folder: at } = await start({ folder: aFolder(folder) });
      await eventually('agents can come', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await page.evaluate(() => Object.assign(globalThis, { loaded: 'once' }));
      await using agent = await anAgent(at);
      const from = performance.now();
      await agent.client.callTool({ name: 'memory_store', arguments: { key: 'editor/name', value: 'Helix, beside a terminal' } });
      await rows(page, /editor\/name/).waitFor();
      const appeared = performance.now() - from;
      for (let number = 0; number < 20; number += 1)
        await agent.client.callTool({ name: 'memory_store', arguments: { key: `note/${number}`, value: `number ${number}` } });
      await eventually('every fact has a row', async () => (await rows(page).count()) >= 21);
      must('the page was not loaded again', (await page.evaluate('loaded')) === 'once');

      const search = page.getByRole('searchbox');
      await search.fill('helix terminal');
      await eventually('the search narrows the list', async () => (await rows(page).count()) === 1);
      const row = rows(page, /editor\/name/);
      await row.click();
      await page.getByText('Helix, beside a terminal').first().waitFor();

      await page
        .getByRole('button', { name: /^Forget/ })
        .first()
        .click();
      await eventually('the agent does not find it any more', async () => {
        const { isError } = await agent.client.callTool({ name: 'memory_recall', arguments: { key: 'editor/name' } });
        return isError === true;
      });
      await page.getByRole('button', { name: 'Undo' }).click();
      await search.fill('');
      await rows(page, /editor\/name/).waitFor();
      const { isError } = await agent.client.callTool({ name: 'memory_recall', arguments: { key: 'editor/name' } });
      must('the agent finds it again', isError !== true);
      await app.close();
      must('it ended well', (await ended) === 0);
      return `a row ${appeared.toFixed(0)} ms after the agent asked`;
    },
  },
  {
    name: 'its owner locks, unlocks, pauses and lets in by the menu, and what the icon offers is the same (R-DESK-03)',
    async run({ folder }) {
      const { app, page, folder: at } = await start({ folder: aFolder(folder) });
      await eventually('agents can come', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await act(app, ({ Tray }) => {
        const set: (menu: never) => void = Reflect.get(Tray.prototype, 'setContextMenu');
        Tray.prototype.setContextMenu = function (menu) {
          Object.assign(globalThis, { trayMenu: menu?.items.map(({ label }) => label) });
          set.call(this, menu as never);
        };
      });
      const inTray = (): Promise<string[]> => known(app, () => (globalThis as unknown as { trayMenu: string[] }).trayMenu);
      await using agent = await anAgent(at);
      const store = async (key: string): Promise<boolean> => {
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key, value: 'v' } });
        return isError !== true;
      };
      must('an agent can write', await store('a'));
      await press(app, 'Lock');
      await eventually('it says so', async () => (await labels(app))[0]?.startsWith('Locked') === true);
      must('the icon offers the same', (await inTray()).join() === (await labels(app)).join());
      must('an agent cannot write', !(await store('b')));
      await press(app, 'Unlock');
      await eventually('it is open again', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      must('an agent can write again', await store('c'));

      await press(app, 'Pause Agents');
      await eventually('it says so', async () => (await labels(app))[0]?.startsWith('Paused') === true);
      must(
        'nobody listens',
        await fetch(`${agent.url}/healthz`).then(
          () => false,
          () => true,
        ),
      );
      await page.getByText('Agents cannot reach this memory.').waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await eventually('agents can come', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      must('the icon offers the same', (await inTray()).join() === (await labels(app)).join());

      await press(app, 'Copy MCP Address');
      const copied = await known(app, ({ clipboard }) => clipboard.readText());
      must(`the address is copied (${copied})`, /^http:\/\/127\.0\.0\.1:\d+\/api\/v1\/mcp$/.test(copied));
      await app.close();
      return 'six states';
    },
  },
  {
    name: 'what cannot be taken back is asked in a dialog that no page can answer (R-DESK-08)',
    async run({ folder }) {
      const { app, page } = await start({ folder: aFolder(folder) });
      const ask = (name: string, input: object) => askFrom(page, 'me', name, input);
      await ask('remember', { key: 'a', value: 'b' });
      const asked = await answerDialogs(app, 0);
      for (const [name, input] of [
        ['forget', { scope: 'all' }],
        ['rotateKey', {}],
        ['makeRecoveryKey', {}],
        ['mintToken', { name: 'x', scopes: ['admin'] }],
      ] as const) {
        const { ok } = await ask(name, input);
        must(`${name} is not done without a yes`, !ok);
      }
      must('each was asked once', (await asked()).length === 4);
      must('nothing is gone', (await ask('recall', { key: 'a' })).ok);
      await answerDialogs(app, 1);
      must('a yes is a yes', (await ask('forget', { scope: 'all' })).ok && !(await ask('recall', { key: 'a' })).ok);
      await app.close();
      return 'four questions';
    },
  },
];
