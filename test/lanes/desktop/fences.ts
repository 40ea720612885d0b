import { existsSync, readFileSync, statSync } from 'node:fs';
import fc from 'fast-check';
import { failures } from '../../../src/contract/failure.ts';
import type { BridgeResponse } from '../../../src/contract/window.ts';
import type { Check } from '../faults/lane.ts';
import { act, aFolder, answerDialogs, args, askFrom, eventually, known, must, ROOT, start } from './app.ts';

const RUNS = 10_000;

/** Limits on a compromised page. */
export const fences: readonly Check[] = [
  {
    name: 'the page has no Node, cannot navigate and has no permission (R-DESK-10)',
    async run({ folder }) {
      const { app, page } = await start({ folder: aFolder(folder) });
      const globals = await page.evaluate(() => {
        const all = globalThis as unknown as Record<string, unknown>;
        return ['require', 'process', 'module', 'Buffer', 'electron', 'ipcRenderer'].filter((name) => name in all);
      });
      must(`no Node is in the page (${globals.join()})`, globals.length === 0);
      const bridge = await page.evaluate('Object.keys(window.helmdeck).sort().join()');
      must(`the preload has two functions and a word (${String(bridge)})`, bridge === 'call,onChange,place');
      const before = page.url();
      const pages = (): number => app.windows().length;
      await page.evaluate(`
        location.href = 'https://example.com/';
        window.open('https://example.com/');
        Object.assign(document.createElement('a'), { href: 'https://example.com/', target: '_blank' }).click();
        Object.assign(document.createElement('a'), { href: 'file:///etc/passwd' }).click();
      `);
      await page.waitForTimeout(500);
      must('it did not navigate', page.url() === before && pages() === 1);
      const outcome = async (script: string): Promise<string> =>
        String(await page.evaluate(`(async () => { ${script} })().then(() => 'done', (error) => 'refused: ' + error.name)`));
      for (const [what, script] of [
        ['request', `await fetch('https://example.com/')`],
        ['request to the listener', `await fetch('http://127.0.0.1:7345/healthz')`],
        ['microphone', `await navigator.mediaDevices.getUserMedia({ audio: true })`],
        ['screen', `await navigator.mediaDevices.getDisplayMedia()`],
        ['reading the clipboard', `await navigator.clipboard.readText()`],
        [
          'position',
          `await new Promise((_, reject) => navigator.geolocation.getCurrentPosition(_, () => reject(new Error('no'))))`,
        ],
      ] as const) {
        const how = await outcome(script);
        must(`no ${what} (${how})`, how.startsWith('refused'));
      }
      must('notifications are denied', (await page.evaluate('Notification.requestPermission()')) === 'denied');
      const frame = await page.evaluate(`new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.src = 'https://example.com/';
        frame.onload = () => { try { done(frame.contentDocument === null ? 'blocked' : 'empty'); } catch { done('blocked'); } };
        document.body.append(frame);
        setTimeout(() => done('blocked'), 1000);
      })`);
      must(`no frame shows another origin (${String(frame)})`, frame === 'blocked' || frame === 'empty');
      if (args.length === 0) {
        const pid = await known(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.getOSProcessId());
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        must('the system filters the system calls of its process', /^Seccomp:\s+2$/m.test(status));
      }
      await app.close();
      return args.length === 0 ? 'in the sandbox of the system' : 'as root, so without the sandbox of the system';
    },
  },
  {
    name: `of ${RUNS} invalid calls each is refused with a code and has no effect (R-DESK-11)`,
    async run({ folder }) {
      const { app, page } = await start({ folder: aFolder(folder) });
      const asked = await answerDialogs(app, 0);
      const calls = fc.sample(
        fc.tuple(
          fc.jsonValue(),
          fc.oneof(
            fc.jsonValue(),
            fc.constantFrom('recall', 'remember', 'list', 'forget', '__proto__', 'constructor', 'listening'),
          ),
          fc.jsonValue(),
        ),
        { numRuns: RUNS, seed: 7 },
      );
      const answers = await page.evaluate(
        async (all) => {
          const { helmdeck } = globalThis as unknown as {
            helmdeck: { call(...given: readonly unknown[]): Promise<BridgeResponse> };
          };
          const out: string[] = [];
          for (const given of all) {
            try {
              const crossed = await helmdeck.call(...given);
              out.push(crossed.ok ? 'ok' : crossed.code);
            } catch (error) {
              out.push(`thrown: ${String(error)}`);
            }
          }
          return out;
        },
        calls as unknown as readonly (readonly unknown[])[],
      );
      const codes = new Set<string>(['ok', ...Object.keys(failures)]);
      const strange = answers.filter((answer) => !codes.has(answer) || answer === 'internal');
      must(`each is a refusal (${strange.slice(0, 3).join()})`, strange.length === 0);
      must('no dialog was shown', (await asked()).length === 0);
      const { ok } = await askFrom(page, 'me', 'status', {});
      must('it still responds', ok);
      await app.close();
      const count = (code: string): number => answers.filter((answer) => answer === code).length;
      return `${count('invalid_input')} invalid, ${count('not_found')} unknown, ${count('ok')} fitted`;
    },
  },
  {
    name: 'facts are exported to the chosen file, and nothing else is downloaded (R-DESK-14)',
    async run({ folder }) {
      const { app, page, folder: at } = await start({ folder: aFolder(folder) });
      must('there is a fact', (await askFrom(page, 'me', 'remember', { key: 'a', value: 'b' })).ok);
      const path = `${at}/kept.jsonl`;
      // Replaces the save dialog, which no test can operate.
      await act(
        app,
        ({ session }, chosen) => {
          const seen: { url: string; asks: string | undefined; left: boolean }[] = [];
          Object.assign(globalThis, { seen });
          session.defaultSession.on('will-download', (event, item) => {
            seen.push({
              url: item.getURL(),
              asks: item.getSaveDialogOptions().defaultPath,
              left: !event.defaultPrevented && item.getSavePath() === '',
            });
            if (!event.defaultPrevented) item.setSavePath(chosen);
          });
        },
        path,
      );
      const seen = () =>
        known(app, () => (globalThis as unknown as { seen: { url: string; asks?: string; left: boolean }[] }).seen);
      for (const href of ['data:text/plain,x', page.url(), `${page.url()}assets/`]) {
        await page.evaluate(
          `Object.assign(document.createElement('a'), { href: ${JSON.stringify(href)}, download: 'x.sh' }).click()`,
        );
      }
      await page.waitForTimeout(500);
      must('no other download is allowed', (await seen()).every(({ left }) => !left) && !existsSync(path));
      await page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name: 'Settings' }).click();
      await page.getByRole('button', { name: 'Export…' }).click();
      await eventually('the file exists', () => existsSync(path) && readFileSync(path, 'utf8').includes('"key":"a"'));
      await eventually('only its owner can read it', () => (statSync(path).mode & 0o777) === 0o600);
      const last = (await seen()).at(-1);
      must(
        `the owner is asked for the file (${JSON.stringify(last)})`,
        last?.left === true && last.asks === 'helmdeck-memory-me.jsonl',
      );
      await app.close();
      return `${statSync(path).size} bytes`;
    },
  },
  {
    name: 'another window and another frame cannot call operations (R-DESK-11)',
    async run({ folder }) {
      const { app, page } = await start({ folder: aFolder(folder) });
      const preload = `${ROOT}/out/preload/index.cjs`;
      const fromAnother = await known(
        app,
        async ({ BrowserWindow }, script) => {
          const other = new BrowserWindow({ show: false, webPreferences: { preload: script, sandbox: true } });
          await other.loadURL(
            BrowserWindow.getAllWindows()
              .find((window) => window !== other)
              ?.webContents.getURL() ?? '',
          );
          const answer: unknown = await other.webContents.executeJavaScript(`window.helmdeck.call('me', 'status', {})`);
          other.destroy();
          return answer;
        },
        preload,
      );
      must(
        `another window is refused (${JSON.stringify(fromAnother)})`,
        (fromAnother as BridgeResponse & { code?: string }).code === 'forbidden_origin',
      );
      must('the window is not', (await askFrom(page, 'me', 'status', {})).ok);
      await app.close();
      return 'refused';
    },
  },
];
