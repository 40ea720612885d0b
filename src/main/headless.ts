import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { readBuildInfo } from './build-info.ts';
import { ignoreDebuggerSignal } from './debugger-guard.ts';
import { configureProgramCall } from './program-call.ts';

const ROOT = join(import.meta.dirname, '../..');

/** It takes nothing but its own name, which npm start may pass on. */
function readArguments(args: readonly string[]): void {
  if (args.some((arg) => arg !== '--headless')) {
    throw new Failure(
      'invalid_input',
      'without a window it takes --headless and nothing else; settings stand in the environment or in config.json.',
    );
  }
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

async function main(): Promise<void> {
  // Before anything is written: nobody else may read what we write, whoever writes it for us.
  process.umask(0o077);
  ignoreDebuggerSignal();
  // Beside the program itself, never among the data: whoever can write here could as well change the program.
  enableCompileCache(join(ROOT, 'out/compiled'));
  configureProgramCall(ROOT);
  try {
    readArguments(process.argv.slice(2));
    const { readyLine, serve, windowLines } = await import('./serve.ts');
    await serve({
      machine: { environment: process.env, platform: process.platform, home: homedir },
      ...readBuildInfo(ROOT),
      async ready(started) {
        console.log([...started.report, ...windowLines(started, process.stdout.isTTY), readyLine(started)].join('\n'));
      },
      ended: () => signalled('SIGINT', 'SIGTERM', 'SIGHUP'),
    });
  } catch (error) {
    // What was not foreseen keeps its stack, for whoever has to find out.
    if (!(error instanceof Failure)) throw error;
    console.error(`Helmdeck Memory cannot start: ${error.message}`);
    process.exitCode = 1;
  }
}

void main();
