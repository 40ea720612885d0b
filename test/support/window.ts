import { readFileSync } from 'node:fs';
import chromium from '@sparticuz/chromium';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium as driver, type Page } from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import type { OperationName, OperationOutput, OperationRequest } from '../../src/contract/operations.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import type { Embeddings } from '../../src/core/operations/embeddings-port.ts';
import type { OwnerSettings } from '../../src/core/operations/memory.ts';
import type { PackServicesOptions } from '../../src/core/packs/pack-services.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../src/core/store/store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import type { ManualClock } from './clock.ts';
import { type ServeOptions, serve, type ServedMemory } from './listener.ts';
import { aCaller } from './memory.ts';
import { withKey } from './store.ts';
import { tempFolder } from './temp-folder.ts';

const PAGES = 'out/renderer';

export interface WindowOptions extends Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'forcedColors'> {
  /** Set by hand, for the memory and the page alike; unless given, both follow the system's. */
  readonly clock?: ManualClock;
  /** A memory that is there already. */
  readonly store?: MemoryStore;
  /** What is in the memory before the window opens. */
  readonly seed?: (as: As) => Promise<unknown>;
  /** No program has ever come, so the window begins with its first screen. */
  readonly firstRun?: true;
  readonly packs?: Omit<PackServicesOptions, 'store' | 'clock'>;
  readonly settings?: OwnerSettings;
  readonly clients?: ServeOptions['clients'];
  readonly embeddings?: Embeddings;
  readonly updates?: ServeOptions['updates'];
  /** In px; browsers begin with 16. */
  readonly fontSize?: number;
  /** Done to the page before it loads. */
  readonly before?: (page: Page, served: ServedMemory) => Promise<unknown>;
  /** What the page may complain about: a refusal shows in its console. */
  readonly allowedErrors?: RegExp;
}

type As = (
  caller?: Partial<Caller>,
) => <Name extends OperationName>(name: Name, input: OperationRequest<Name>) => Promise<OperationOutput<Name>>;

export interface OpenedWindow {
  readonly page: Page;
  readonly served: ServedMemory;
  /** Asks the same memory as an agent would. */
  readonly as: As;
  /** Time passes for the memory and the page. */
  readonly advance: (ms: number) => Promise<void>;
  /** Every address that the page asked for, without those of the first load. */
  readonly requests: readonly string[];
}

let opening: Promise<Browser> | undefined;

/** One for all tests of a file; it goes with this process, however that ends, because it holds the other end of its pipe. */
async function browser(): Promise<Browser> {
  opening ??= driver.launch({
    executablePath: process.env['CHROME_PATH'] ?? (await chromium.executablePath()),
    // Its sandbox needs rights that containers do not give; what it shows is ours.
    args: ['--no-sandbox', '--font-render-hinting=none', '--force-color-profile=srgb'],
    headless: true,
  });
  return opening;
}

afterAll(async () => (await opening)?.close());

/** A page that has followed a fresh link to the window of a real memory. What it complains about fails the test. */
export async function openWindow({
  clock,
  store: given,
  seed: filled,
  firstRun: unused,
  packs,
  settings,
  clients,
  embeddings,
  updates,
  fontSize: textSize,
  before,
  allowedErrors: mayComplain,
  ...looks
}: WindowOptions = {}): Promise<OpenedWindow> {
  const store = given ?? (await openStore({ folder: tempFolder(), clock: clock ?? systemClock, sources: withKey() }));
  // Closed in the other order than opened.
  if (!given) onTestFinished(() => store[Symbol.asyncDispose]());
  const served = await serve({
    store,
    clock: clock ?? systemClock,
    windowFolder: PAGES,
    ...(packs && { packs }),
    ...(settings && { settings }),
    ...(clients && { clients }),
    ...(embeddings && { embeddings }),
    updates,
  });
  const as: As = (caller) => (name, input) => served.perform(aCaller(caller), name, input);
  if (!unused) await served.tokens.verify(await served.token(), 'mcp');
  await filled?.(as);
  const context = await (
    await browser()
  ).newContext({
    viewport: { width: 920, height: 620 },
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    ...looks,
  });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(90_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  if (clock) {
    await page.clock.install({ time: clock.now() });
    // Timers run, and time stands still, as it does for the memory.
    await page.clock.setFixedTime(clock.now());
  }
  if (textSize !== undefined) {
    const session = await context.newCDPSession(page);
    await session.send('Page.setFontSizes', { fontSizes: { standard: textSize, fixed: (textSize * 13) / 16 } });
  }
  const complaints = collectPageErrors(page);
  onTestFinished(() => expect(complaints.filter((text) => mayComplain?.test(text) !== true)).toEqual([]));
  await before?.(page, served);
  await page.goto(served.listener.windowLink() ?? '');
  await (unused ? page.getByRole('heading', { level: 1 }) : page.getByRole('searchbox', { name: 'Search facts' }))
    .first()
    .waitFor();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  return {
    page,
    served,
    as,
    requests,
    async advance(ms) {
      await clock?.advance(ms);
      await page.clock.fastForward(ms);
      if (clock) await page.clock.setFixedTime(clock.now());
    },
  };
}

/** Whatever went wrong in the page, as it comes. */
export function collectPageErrors(page: Page): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('crash', () => complaints.push('The page crashed.'));
  return complaints;
}

/** The rules of accessibility that are broken as the page stands, a line each; only one of them, if it is named. */
export async function accessibilityViolations(page: Page, only?: string): Promise<string[]> {
  // As text: the page's policy lets no script in by an element.
  await page.evaluate(axe.source);
  const options = only === undefined ? {} : { runOnly: [only] };
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  );
}

/** How large the one script is that the window loads. */
export const scriptBytes = (): number => {
  const [, name = ''] = /src="\.(\/assets\/[^"]+\.js)"/.exec(readFileSync(`${PAGES}/index.html`, 'utf8')) ?? [];
  return readFileSync(`${PAGES}${name}`).length;
};
