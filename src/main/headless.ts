import { homedir } from 'node:os';
import { Failure } from '../contract/failure.ts';
import { systemClock } from '../core/clock.ts';
import { keySources } from '../core/keys/sources.ts';
import { openStore } from '../core/open-store.ts';
import { readConfig } from './config.ts';
import { startReport } from './start-report.ts';

/** The whole program without a window. What opens last closes first. */
async function run(): Promise<void> {
  const environment = process.env;
  const { folder } = readConfig({ environment, platform: process.platform, home: homedir });
  await using store = await openStore({
    folder,
    clock: systemClock,
    sources: keySources({ environment, folder, desktop: false }),
  });
  // From here on a signal closes the memory; one that came before has ended the program, and a memory bears that too.
  const ended = signalled('SIGINT', 'SIGTERM');
  for (const line of startReport(store.status(), folder)) console.log(line);
  console.log('Helmdeck Memory is running; agents cannot reach it yet. End it with Ctrl+C or SIGTERM.');
  await ended;
}

/** The first signal ends the program; later ones change nothing, because npm passes on what the terminal has sent already. */
async function signalled(...signals: readonly NodeJS.Signals[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of signals) process.on(signal, () => resolve());
  // Waiting for a signal alone keeps no program running.
  const running = setInterval(() => undefined, 2 ** 31 - 1);
  await promise;
  clearInterval(running);
}

// Before anything is written: nobody else may read what we write, whoever writes it for us.
process.umask(0o077);
try {
  await run();
} catch (error) {
  // What was not foreseen keeps its stack, for whoever has to find out.
  if (!(error instanceof Failure)) throw error;
  console.error(`Helmdeck Memory cannot start: ${error.message}`);
  process.exitCode = 1;
}
