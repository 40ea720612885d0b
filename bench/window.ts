/**
 * Compares the desktop with an empty Electron window. Run `npm run build` first, then `node bench/window.ts` on a machine with a
 * display. HELMDECK_TEST_ELECTRON names the Electron binary; the default is the one that `npm start` downloads.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ours } from './memory.ts';
import { median, report, type Result } from './report.ts';

const ROOT = join(import.meta.dirname, '..');
const ELECTRON = process.env['HELMDECK_TEST_ELECTRON'] ?? join(ROOT, 'node_modules/electron/dist/electron');
const FACTS = 100_000;
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const ROUNDS = 9;
/** How long after the first rows. Modules load and the index is built until then; that is reported separately. */
const SETTLED_MS = 4000;
const USED_MS = 6000;
const PATIENCE_MS = 60_000;
/** Chromium's sandbox does not work as root. Both sides run without it then. */
const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

/** A minimal window. */
const EMPTY = `
  const { app, BrowserWindow } = require('electron');
  app.whenReady().then(() => {
    const window = new BrowserWindow({ width: 920, height: 620, show: false, webPreferences: { sandbox: true } });
    window.once('ready-to-show', () => window.show());
    window.loadURL('data:text/html,<title>empty</title><p>empty');
  });
`;

/**
 * Runs in the page. Measures each typed letter until the window stops changing, which is after the first hit. Every query has hits,
 * because its words are those of the facts.
 */
const TYPE = `
  const field = document.querySelector('input[type=search]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  let at = 0;
  new MutationObserver(() => requestAnimationFrame(() => { at = performance.now(); }))
    .observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true });
  const took = [];
  (async () => {
    for (const words of ['what the owner said', 'a preference of hers', 'the project of today']) {
      for (let end = 1; end <= words.length; end += 1) {
        set.call(field, words.slice(0, end));
        const from = at = performance.now();
        field.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise((next) => setTimeout(next, 250));
        if (at > from) took.push(at - from);
      }
    }
    set.call(field, '');
    field.dispatchEvent(new Event('input', { bubbles: true }));
    took.sort((one, other) => one - other);
    done(took.length < 20 ? NaN : took[Math.ceil(took.length * 0.95) - 1]);
  })();
`;

/** Runs in the page. Measures the longest frame during very fast scrolling of the list. */
const SCROLL = `
  setTimeout(() => {
    const list = document.querySelector('[role=listbox]');
    let longest = 0;
    let last;
    let frames = 0;
    const next = (at) => {
      if (last !== undefined) longest = Math.max(longest, at - last);
      last = at;
      list.scrollTop += 170;
      if ((frames += 1) < 180) requestAnimationFrame(next);
      else done(longest);
    };
    requestAnimationFrame(next);
  }, 1000);
`;

/** Preloaded into both. Reports when the window is shown, when it has its first row, and the longest task of the main process. */
const WATCH = `
  const { app } = require('electron');
  const say = (what, figure) => console.log('bench ' + what + ' ' + figure);
  const now = () => performance.timeOrigin + performance.now();
  let longest = 0;
  let last = performance.now();
  setInterval(() => {
    const at = performance.now();
    longest = Math.max(longest, at - last - 5);
    last = at;
  }, 5);
  app.on('browser-window-created', (_event, window) => {
    window.once('show', () => {
      say('shown', now());
      longest = 0;
    });
    window.webContents.once('dom-ready', () => {
      const script = (body) => window.webContents.executeJavaScript('new Promise((done) => { ' + body + ' })');
      const there = "const look = () => document.querySelector('[role=option]') ? requestAnimationFrame(() => done(performance.timeOrigin + performance.now())) : setTimeout(look, 1); look();";
      script(there).then(async (at) => {
        say('row', at);
        if (!process.env.BENCH_USE) return;
        await new Promise((resolve) => setTimeout(resolve, ${SETTLED_MS}));
        say('start', longest);
        longest = 0;
        const end = now() + ${USED_MS};
        for (let turn = 0; now() < end; turn += 1) {
          await script("window.helmdeck.call('me', 'search', { query: 'what the owner said " + turn + "', limit: 50 }).then(done)");
          await script("window.helmdeck.call('me', 'list', { limit: 200 }).then(done)");
          await script("window.helmdeck.call('me', 'remember', { key: 'bench/" + turn + "', value: 'v' }).then(done)");
        }
        say('longest', longest);
        say('keystroke', await script(${JSON.stringify(TYPE)}));
        say('frame', await script(${JSON.stringify(SCROLL)}));
      });
    });
  });
`;

interface Shown {
  /** Milliseconds from the spawn. */
  readonly shown: number;
  readonly row: number;
  readonly start: number;
  readonly longest: number;
  readonly keystroke: number;
  readonly frame: number;
}

export async function windows(): Promise<Result[]> {
  if (!existsSync(ELECTRON)) throw new Error('Electron is missing. Set HELMDECK_TEST_ELECTRON, or run npm start once.');
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-bench-window-'));
  try {
    writeFileSync(join(folder, 'watch.cjs'), WATCH);
    writeFileSync(join(folder, 'empty.cjs'), EMPTY);
    return [...(await starts(folder, 100)), ...(await starts(folder, FACTS)), ...(await use(folder))];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function starts(folder: string, facts: number): Promise<Result[]> {
  await using made = await ours(facts, { quota: ROOM });
  // Only one process can open the memory, so stop this one and keep the folder.
  await made.store[Symbol.asyncDispose]();
  const empty: number[] = [];
  const shown: number[] = [];
  const rows: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    empty.push((await launch(folder, join(folder, 'empty.cjs'), {}, 'shown')).shown);
    const own = await launch(folder, ROOT, { HELMDECK_DATA_DIR: dirname(made.file) }, 'row');
    shown.push(own.shown);
    rows.push(own.row - own.shown);
  }
  return [
    {
      what: `window shown, ${facts} facts`,
      figure: median(shown) / median(empty),
      unit: 'times an empty one',
      bar: { atMost: 1.3 },
      from: `${median(empty).toFixed(0)} ms empty, ${median(shown).toFixed(0)} ms ours`,
    },
    {
      what: `first rows after it, ${facts} facts`,
      figure: Math.max(0, median(rows)),
      unit: 'ms',
      bar: { atMost: 100 },
      from: `between ${Math.min(...rows).toFixed(0)} and ${Math.max(...rows).toFixed(0)} ms; negative if the rows were there before the window`,
    },
  ];
}

async function use(folder: string): Promise<Result[]> {
  await using made = await ours(FACTS, { quota: ROOM });
  await made.store[Symbol.asyncDispose]();
  const environment = { HELMDECK_DATA_DIR: dirname(made.file), BENCH_USE: '1' };
  const { start, longest, keystroke, frame } = await launch(folder, ROOT, environment, 'frame');
  return [
    {
      what: `longest task of the main process while it starts, ${FACTS} facts`,
      figure: start,
      unit: 'ms',
      from: `from the window shown until ${SETTLED_MS / 1000} s after its first rows`,
    },
    {
      what: `longest task of the main process while it searches, lists and writes, ${FACTS} facts`,
      figure: longest,
      unit: 'ms',
      bar: { atMost: 50 },
      from: `${USED_MS / 1000} s of use`,
    },
    {
      what: `typed letter in the search field to its hits, p95, ${FACTS} facts`,
      figure: keystroke,
      unit: 'ms',
      bar: { atMost: 50 },
      from: 'three questions, letter by letter',
    },
    {
      what: `longest frame while the list is scrolled, ${FACTS} facts`,
      figure: frame,
      unit: 'ms',
      bar: { atMost: 32 },
      from: '180 frames of five rows',
    },
  ];
}

/** Starts the program, and stops it when it has reported the figure `until`. */
async function launch(folder: string, what: string, environment: Record<string, string>, until: keyof Shown): Promise<Shown> {
  const { PATH = '', DISPLAY = '', XAUTHORITY = '' } = process.env;
  const begun = performance.timeOrigin + performance.now();
  const child = spawn(ELECTRON, [...args, '-r', join(folder, 'watch.cjs'), what], {
    env: { PATH, DISPLAY, XAUTHORITY, HOME: folder, HELMDECK_ADDR: '127.0.0.1:0', HELMDECK_MEANING: 'off', ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const ended = once(child, 'exit');
  let said = '';
  const told = (name: keyof Shown): number => Number(new RegExp(`^bench ${name} (\\S+)$`, 'm').exec(said)?.[1] ?? NaN);
  for await (const text of child.stdout) {
    said += String(text);
    if (!Number.isNaN(told(until)) && !Number.isNaN(told('shown'))) break;
  }
  child.kill('SIGTERM');
  await ended;
  clearTimeout(timer);
  if (Number.isNaN(told(until))) throw new Error(`The program did not report ${until}: ${said}`);
  return {
    shown: told('shown') - begun,
    row: told('row') - begun,
    start: told('start'),
    longest: told('longest'),
    keystroke: told('keystroke'),
    frame: told('frame'),
  };
}

if (import.meta.main) process.exitCode = report(await windows()) ? 0 : 1;
