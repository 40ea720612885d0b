import { enableCompileCache } from 'node:module';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { readBuildInfo } from './build-info.ts';
import { Interrupted } from './cli/interrupted.ts';
import { ignoreDebuggerSignal } from './debugger-guard.ts';
import { configureProgramCall } from './program-call.ts';

/** The launcher and the terminal may both hand on one and the same Ctrl+C. */
const SAME_SIGNAL_MS = 1000;

/** The first signal brings what was begun to a safe end; whoever insists ends the program where it stands. */
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

const ROOT = join(import.meta.dirname, '../..');

async function main(): Promise<never> {
  // Before anything is written: nobody else may read what we write, whoever writes it for us.
  process.umask(0o077);
  ignoreDebuggerSignal();
  // Beside the program itself, never among the data: whoever can write here could as well change the program.
  enableCompileCache(join(ROOT, 'out/compiled'));
  configureProgramCall(ROOT, process.cwd());
  const { runCommandLine } = await import('./cli/run.ts');
  const code = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    platform: process.platform,
    home: homedir,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    ...readBuildInfo(ROOT),
    now: Date.now,
    interrupted: interruption(),
  });
  // Everything is closed. A keychain that never answers, or a terminal that is still open, would keep us here.
  process.exit(code);
}

void main();
