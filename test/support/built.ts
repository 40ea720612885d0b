import chromium from '@sparticuz/chromium';
import { buildIfStale } from '../../src/main/roots/start/build-if-stale.ts';

/** Before any test: two files that need the build must not make it at once, nor unpack the browser at once. */
export async function setup(): Promise<void> {
  const why = await buildIfStale(process.cwd(), console.log);
  if (why !== undefined) throw new Error(why);
  if (process.env['CHROME_PATH'] === undefined) await chromium.executablePath();
}
