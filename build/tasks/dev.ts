import { spawn } from 'node:child_process';
import { watch } from 'node:fs';
import { join } from 'node:path';

/**
 * `npm run dev`: runs `npm start` and restarts it when a source changes. `npm start` rebuilds what is stale and chooses between the
 * desktop and the headless program. Arguments are passed on, for example `npm run dev -- --headless`.
 */

const ROOT = join(import.meta.dirname, '../..');
/** Editors save in several steps, so wait for the last change. */
const QUIET_MS = 200;

const start = () =>
  spawn(process.execPath, ['--disable-sigusr1', join(ROOT, 'src/main/roots/start.ts'), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });

let program = start();
let restarting: NodeJS.Timeout | undefined;

async function restart(): Promise<void> {
  console.log('A source file has changed. Restarting…');
  // The old program must release the memory before the new one opens it.
  if (program.exitCode === null && program.signalCode === null) {
    const { promise, resolve } = Promise.withResolvers<void>();
    program.once('close', () => resolve());
    program.kill('SIGTERM');
    await promise;
  }
  program = start();
}

let restarts: Promise<void> = Promise.resolve();
watch(join(ROOT, 'src'), { recursive: true }, () => {
  clearTimeout(restarting);
  restarting = setTimeout(() => void (restarts = restarts.then(restart)), QUIET_MS);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    program.once('close', () => process.exit());
    if (!program.kill(signal)) process.exit();
  });
}
