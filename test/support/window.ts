import { readFileSync } from 'node:fs';
import chromium from '@sparticuz/chromium';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium as driver, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import type { OperationName, OperationOutput, OperationRequest } from '../../src/contract/operations.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import type { FactMeaning } from '../../src/core/meaning/nearest.ts';
import type { Embeddings } from '../../src/core/operations/embeddings-port.ts';
import type { MeaningModel, MeaningVectors } from '../../src/core/operations/meaning-port.ts';
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
  /** A manual clock for the memory and the page. By default, both use the system clock. */
  readonly clock?: ManualClock;
  /** An existing store to open instead of a new one. */
  readonly store?: MemoryStore;
  /** Fills the memory before the window opens. */
  readonly seed?: (as: As) => Promise<unknown>;
  /** No program has used a token, so the window shows its first screen. */
  readonly firstRun?: true;
  readonly packs?: Omit<PackServicesOptions, 'store' | 'clock'>;
  readonly settings?: OwnerSettings;
  readonly clients?: ServeOptions['clients'];
  readonly embeddings?: Embeddings;
  /** Finds facts by their meaning. If absent, facts are found by their words only. */
  readonly meaning?: FactMeaning;
  readonly meaningModel?: MeaningModel;
  readonly meaningVectors?: MeaningVectors;
  readonly updates?: ServeOptions['updates'];
  /** In px; the default of browsers is 16. */
  readonly fontSize?: number;
  /** Prepares the page before it loads. */
  readonly before?: (page: Page, served: ServedMemory) => Promise<unknown>;
  /** Console errors that the test expects, for example from rejected requests. */
  readonly allowedErrors?: RegExp;
}

type As = (
  caller?: Partial<Caller>,
) => <Name extends OperationName>(name: Name, input: OperationRequest<Name>) => Promise<OperationOutput<Name>>;

export interface OpenedWindow {
  readonly page: Page;
  readonly served: ServedMemory;
  /** Calls operations of the same memory as another caller. */
  readonly as: As;
  /** Advances the clock of the memory and the page. */
  readonly advance: (ms: number) => Promise<void>;
  /** The URLs that the page requested after the first load. */
  readonly requests: readonly string[];
}

let opening: Promise<Browser> | undefined;

/** One browser per process of the tests. It exits with that process, because its pipe closes. A browser that crashed is replaced. */
async function browser(): Promise<Browser> {
  const opened = await opening;
  if (opened?.isConnected()) return opened;
  opening = driver.launch({
    executablePath: process.env['CHROME_PATH'] ?? (await chromium.executablePath()),
    // The sandbox does not work in containers, and the pages are our own.
    args: ['--no-sandbox', '--font-render-hinting=none', '--force-color-profile=srgb'],
    headless: true,
  });
  return opening;
}

/** Opens the window of a real memory in a browser. Console errors fail the test. */
export async function openWindow({
  clock,
  store: given,
  seed,
  firstRun,
  packs,
  settings,
  clients,
  embeddings,
  meaning,
  meaningModel,
  meaningVectors,
  updates,
  fontSize,
  before,
  allowedErrors,
  ...looks
}: WindowOptions = {}): Promise<OpenedWindow> {
  const store = given ?? (await openStore({ folder: tempFolder(), clock: clock ?? systemClock, sources: withKey() }));
  // Callbacks run in reverse order, so the store is closed last.
  if (!given) onTestFinished(() => store[Symbol.asyncDispose]());
  const served = await serve({
    store,
    clock: clock ?? systemClock,
    windowFolder: PAGES,
    ...(packs && { packs }),
    ...(settings && { settings }),
    ...(clients && { clients }),
    ...(embeddings && { embeddings }),
    ...(meaningModel && { meaningModel }),
    ...(meaningVectors && { meaningVectors }),
    updates,
    meaning,
  });
  const as: As = (caller) => (name, input) => served.perform(aCaller(caller), name, input);
  if (!firstRun) await served.tokens.verify(await served.token(), 'mcp');
  await seed?.(as);
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
    // Timers run, but the time only changes with `advance`, as for the memory.
    await page.clock.setFixedTime(clock.now());
  }
  if (fontSize !== undefined) {
    const session = await context.newCDPSession(page);
    await session.send('Page.setFontSizes', { fontSizes: { standard: fontSize, fixed: (fontSize * 13) / 16 } });
  }
  const errors = collectPageErrors(page);
  onTestFinished(() => expect(errors.filter((text) => allowedErrors?.test(text) !== true)).toEqual([]));
  await before?.(page, served);
  await page.goto(served.listener.windowLink() ?? '');
  await (firstRun ? page.getByRole('heading', { level: 1 }) : page.getByRole('searchbox', { name: 'Search facts' }))
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

/** Collects the console errors and warnings of a page. */
export function collectPageErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('crash', () => errors.push('The page crashed.'));
  return errors;
}

/** The accessibility violations of the page. `only` limits the check to one rule. */
export async function accessibilityViolations(page: Page, only?: string): Promise<string[]> {
  // The content security policy of the page blocks script elements.
  await page.evaluate(axe.source);
  const options = only === undefined ? {} : { runOnly: [only] };
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  );
}

/** The size of the window's script. */
export const scriptBytes = (): number => {
  const [, name = ''] = /src="\.(\/assets\/[^"]+\.js)"/.exec(readFileSync(`${PAGES}/index.html`, 'utf8')) ?? [];
  return readFileSync(`${PAGES}${name}`).length;
};
