import chromium from '@sparticuz/chromium';
import { buildIfStale } from '../../src/main/roots/start/build-if-stale.ts';

/** Runs before all tests, because two test files must not build, or unpack the browser, at the same time. */
export async function setup(): Promise<void> {
  const why = await buildIfStale(process.cwd(), console.log);
  if (why !== undefined) throw new Error(why);
  if (process.env['CHROME_PATH'] === undefined) await chromium.executablePath();
}
