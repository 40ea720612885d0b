import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../cli/errors.ts';
import { ignoreDebuggerSignal } from './debugger-guard.ts';
import { readBuildInfo, ROOT } from './installation.ts';
import { configureProgramCall } from './program-call.ts';
import { refuseStart } from './refuse-start.ts';

/** Throws for every argument except --headless, which `npm start` passes on to this program. */
function readArguments(args: readonly string[]): void {
  if (args.every((arg) => arg === '--headless')) return;
  throw new UsageError('The only valid argument is --headless. Settings come from the environment or from config.json.');
}

/** Resolves when the first signal arrives. Ignores later signals, because npm repeats each signal that the terminal sends. */
async function signalled(...signals: readonly NodeJS.Signals[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of signals) process.on(signal, () => resolve());
  // Keep the process alive with a timer, because signal handlers do not keep it alive.
  const running = setInterval(() => undefined, 2 ** 31 - 1);
  await promise;
  clearInterval(running);
}

async function main(): Promise<void> {
  // Set the umask before the first write, so that only this user can read new files, even the files that libraries write.
  process.umask(0o077);
  ignoreDebuggerSignal();
  // Cache the compiled code in the program's folder, because the cache needs the same protection as the program.
  enableCompileCache(join(ROOT, 'out/compiled'));
  configureProgramCall();
  try {
    readArguments(process.argv.slice(2));
    const { serve } = await import('./serve.ts');
    await serve({
      machine: { environment: process.env, platform: process.platform, home: homedir },
      ...readBuildInfo(),
      ready: async ({ report }) => console.log(report.join('\n')),
      ended: () => signalled('SIGINT', 'SIGTERM', 'SIGHUP'),
    });
  } catch (error) {
    process.exitCode = refuseStart(error);
  }
}

void main();
