import type * as Electron from 'electron';
import type { Locator } from 'playwright-core';
import type { Check } from '../faults/lane.ts';
import {
  act,
  aFolder,
  anAgent,
  answerDialogs,
  askFrom,
  aTakenPort,
  eventually,
  isVisible,
  known,
  labels,
  must,
  press,
  pressIcon,
  pressInIcon,
  rows,
  start,
  watchIcon,
} from './app.ts';

/** What the owner does in the window while agents work. */
export const use: readonly Check[] = [
  {
    name: 'a fact of an agent appears without a reload, and can be found, read, renewed, forgotten and restored (R-DESK-01, R-DESK-02)',
    async run({ folder }) {
      const { app, page, ended, folder: at } = await start({ folder: aFolder(folder) });
      await eventually('agents can connect', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await page.evaluate(() => Object.assign(globalThis, { loaded: 'once' }));
      await using agent = await anAgent(at);
      const from = performance.now();
      await agent.client.callTool({ name: 'memory_store', arguments: { key: 'editor/name', value: 'Helix, beside a terminal' } });
      await rows(page, /editor\/name/).waitFor();
      const appeared = performance.now() - from;
      for (let number = 0; number < 20; number += 1)
        await agent.client.callTool({ name: 'memory_store', arguments: { key: `note/${number}`, value: `number ${number}` } });
      await eventually('every fact has a row', async () => (await rows(page).count()) >= 21);
      must('the page was not reloaded', (await page.evaluate('loaded')) === 'once');

      const search = page.getByRole('searchbox');
      await search.fill('helix terminal');
      await eventually('the search narrows the list', async () => (await rows(page).count()) === 1);
      const row = rows(page, /editor\/name/);
      await row.click();
      await page.getByText('Helix, beside a terminal').first().waitFor();

      await page.getByRole('button', { name: 'Change lifetime' }).click();
      const editor = page.getByRole('form', { name: 'Lifetime of editor/name' });
      await editor.getByRole('radio', { name: '1 week' }).check();
      await editor.getByRole('button', { name: 'Save' }).click();
      await editor.waitFor({ state: 'detached' });
      const { content } = await agent.client.callTool({ name: 'memory_recall', arguments: { key: 'editor/name' } });
      const { expires_at: end } = JSON.parse((content as { text: string }[])[0]?.text ?? '') as { expires_at: string };
      const days = (Date.parse(end) - Date.now()) / 86_400_000;
      must(`the agent reads the new expiry (${end})`, days > 6.9 && days <= 7);

      await page
        .getByRole('button', { name: /^Forget/ })
        .first()
        .click();
      await eventually('the agent no longer finds the fact', async () => {
        const { isError } = await agent.client.callTool({ name: 'memory_recall', arguments: { key: 'editor/name' } });
        return isError === true;
      });
      await page.getByRole('button', { name: 'Undo' }).click();
      await search.fill('');
      await rows(page, /editor\/name/).waitFor();
      const { isError } = await agent.client.callTool({ name: 'memory_recall', arguments: { key: 'editor/name' } });
      must('the agent finds the fact again', isError !== true);
      await app.close();
      must('it exited with code 0', (await ended) === 0);
      return `a row ${appeared.toFixed(0)} ms after the agent's request`;
    },
  },
  {
    name: 'the icon resumes, pauses, locks, unlocks, opens and quits, and the menu offers the same (R-DESK-03)',
    async run({ folder }) {
      const taken = await aTakenPort();
      const { app, page, folder: at, ended } = await start({ folder: aFolder(folder), address: taken.address });
      await eventually('agents cannot connect', async () => /is in use by/.test((await labels(app))[0] ?? ''));
      const icon = await watchIcon(app);
      const pictures = new Map<string, string>();
      const says = async (what: string): Promise<void> => {
        await eventually(`it says ${what}`, async () => (await icon()).labels[0]?.startsWith(what) === true);
        const { labels: offered, picture } = await icon();
        must('the menu offers the same', offered.join() === (await labels(app)).join());
        pictures.set(what, picture);
      };
      await says("Agents can't connect");
      await taken[Symbol.asyncDispose]();
      await pressInIcon(app, 'Try Again');
      await says('Listening on');

      await using agent = await anAgent(at);
      const store = async (key: string): Promise<boolean> => {
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key, value: 'v' } });
        return isError !== true;
      };
      must('an agent can write', await store('a'));
      await pressInIcon(app, 'Lock');
      await says('Locked');
      must('an agent cannot write', !(await store('b')));
      await pressInIcon(app, 'Unlock');
      await says('Listening on');
      must('an agent can write again', await store('c'));

      await pressInIcon(app, 'Pause Agents');
      await says('Paused');
      must(
        'nobody listens',
        await fetch(`${agent.url}/healthz`).then(
          () => false,
          () => true,
        ),
      );
      await page.getByText('Agent access is paused.').waitFor();
      const asked = await answerDialogs(app, 1);
      await page.getByRole('button', { name: 'Resume' }).click();
      await says('Listening on');
      must('its owner was asked', (await asked()).join() === 'Resume agent access?');
      await press(app, 'Pause Agents');
      await eventually('the text appears', async () => (await icon()).labels[0]?.startsWith('Paused') === true);
      await pressInIcon(app, 'Resume Agents');
      await eventually('agents can come', async () => (await icon()).labels[0]?.startsWith('Listening on') === true);

      await pressInIcon(app, 'Copy MCP Address');
      const copied = await known(app, ({ clipboard }) => clipboard.readText());
      must(`the address is copied (${copied})`, copied === `http://${taken.address}/api/v1/mcp`);

      const embeddings = async (): Promise<string> => {
        const { labels: offered, ticked } = await icon();
        const label = offered.find((one) => one.startsWith('Embeddings')) ?? '';
        return ticked.includes(label) ? `${label}, ticked` : label;
      };
      must('embeddings are off', (await embeddings()) === 'Embeddings');
      await pressInIcon(app, 'Embeddings');
      await eventually('embeddings are on, or the label says what is missing', async () =>
        /^Embeddings(?! \(starting\)).*, ticked$/.test(await embeddings()),
      );
      await pressInIcon(app, 'Embeddings');
      await eventually('they are off', async () => (await embeddings()) === 'Embeddings');

      for (const open of [() => pressIcon(app), () => pressInIcon(app, 'Open Memory')]) {
        await act(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.hide());
        await eventually('the window is hidden', async () => !(await isVisible(app)));
        await open();
        await eventually('the window is back', () => isVisible(app));
      }
      const seen = [...pictures.values()];
      must('each state has its own picture', !seen.includes('') && new Set(seen).size === pictures.size);
      await pressInIcon(app, 'Quit Helmdeck Memory');
      must('it exited with code 0', (await ended) === 0);
      return `${pictures.size} pictures`;
    },
  },
  {
    name: "a right click offers the system's own menu in a field and on a value, and it works (R-DESK-17)",
    async run({ folder }) {
      const { app, page } = await start({ folder: aFolder(folder) });
      await askFrom(page, 'me', 'remember', { key: 'a', value: 'the-value' });
      await act(app, ({ Menu, clipboard }) => {
        void clipboard.writeText('a pasted word');
        // Replaces the system's menu, which would wait for a choice.
        Menu.prototype.popup = function () {
          Object.assign(globalThis, { shown: this.items });
        };
      });
      /** The items of the menu, after the wanted item was clicked. */
      const pick = async (at: Locator, word: string): Promise<string> => {
        await act(app, () => void Object.assign(globalThis, { shown: undefined }));
        await at.click({ button: 'right', position: { x: 8, y: 8 } });
        const offered = (): Promise<string | undefined> =>
          known(app, () =>
            (globalThis as unknown as { shown?: Electron.MenuItem[] }).shown
              ?.filter(({ type, enabled }) => type !== 'separator' && enabled)
              .map(({ role }) => role)
              .join(),
          );
        await eventually(`a menu offers ${word}`, async () => (await offered()) !== undefined);
        await act(
          app,
          ({ BrowserWindow }, wanted) => {
            const [window] = BrowserWindow.getAllWindows();
            const item = (globalThis as unknown as { shown?: Electron.MenuItem[] }).shown?.find(({ role }) => role === wanted);
            item?.click({}, window, window?.webContents);
          },
          word,
        );
        return (await offered()) ?? '';
      };
      const search = page.getByRole('searchbox');
      const inField = await pick(search, 'paste');
      await eventually('it was pasted', async () => (await search.inputValue()) === 'a pasted word');
      must(`a field takes (${inField})`, inField.split(',').includes('paste'));
      await pick(search, 'selectall');
      await pick(search, 'cut');
      await eventually('it was cut', async () => (await search.inputValue()) === '');

      await rows(page, /a/).click();
      const value = page.getByText('the-value').first();
      await value.selectText();
      const onValue = await pick(value, 'copy');
      must(`marked text gives (${onValue})`, onValue === 'copy');
      await eventually('it was copied', async () => (await known(app, ({ clipboard }) => clipboard.readText())) === 'the-value');
      await app.close();
      return inField;
    },
  },
  {
    name: 'an action that cannot be undone asks in a dialog that no page can answer (R-DESK-08)',
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
        ['runPack', { name: 'helmdeck.memory_forget', input: { scope: 'all' } }],
      ] as const) {
        const { ok } = await ask(name, input);
        must(`${name} is refused without a confirmation`, !ok);
      }
      must('each action asked once', (await asked()).length === 5);
      must('nothing was deleted', (await ask('recall', { key: 'a' })).ok);
      await answerDialogs(app, 1);
      must('a confirmed action is done', (await ask('forget', { scope: 'all' })).ok && !(await ask('recall', { key: 'a' })).ok);
      await app.close();
      return 'five questions';
    },
  },
];
