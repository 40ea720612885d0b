import { enableCompileCache } from 'node:module';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { Interrupted } from '../cli/errors.ts';
import { ignoreDebuggerSignal } from './debugger-guard.ts';
import { readBuildInfo, ROOT } from './installation.ts';
import { configureProgramCall } from './program-call.ts';

/** The terminal and the launcher can both deliver the same Ctrl+C. */
const SAME_SIGNAL_MS = 1000;

/** The first signal cancels the command cleanly; a later one exits at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  let since = Infinity;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const exitCode = 128 + constants.signals[signal];
    process.on(signal, () => {
      if (performance.now() - since > SAME_SIGNAL_MS) process.exit(exitCode);
      since = Math.min(since, performance.now());
      controller.abort(new Interrupted(exitCode));
    });
  }
  return controller.signal;
}

async function main(): Promise<never> {
  // Set before the first write, so that only this user can read new files, including those written by libraries.
  process.umask(0o077);
  ignoreDebuggerSignal();
  // The cache holds code that will run, so it belongs with the program and not in the data folder.
  enableCompileCache(join(ROOT, 'out/compiled'));
  configureProgramCall(process.cwd());
  const { runCommandLine } = await import('../cli/run.ts');
  const code = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    platform: process.platform,
    home: homedir,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    ...readBuildInfo(),
    now: Date.now,
    interrupted: interruption(),
  });
  // Everything is closed. An open terminal or a hanging keychain call would otherwise keep the process alive.
  process.exit(code);
}

void main();
