import { enableCompileCache } from 'node:module';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { Interrupted } from '../cli/errors.ts';
import { ignoreDebuggerSignal } from './debugger-guard.ts';
import { readBuildInfo, ROOT } from './installation.ts';
import { configureProgramCall } from './program-call.ts';

/** Milliseconds in which several signals count as one Ctrl+C, because the terminal and the launcher can both send one. */
const SAME_SIGNAL_MS = 1000;

/**
 * Returns an `AbortSignal`. The first Ctrl+C, SIGTERM or SIGHUP aborts it, so that the command can clean up. The second exits
 * immediately.
 */
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
  // Set the umask before the first write, so that only this user can read new files, even the files that libraries write.
  process.umask(0o077);
  ignoreDebuggerSignal();
  // Cache the compiled code in the program's folder, because the cache needs the same protection as the program.
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
  // Exit explicitly, because an open terminal or a hanging keychain call would keep the process alive. All files are closed by
  // now.
  process.exit(code);
}

void main();
