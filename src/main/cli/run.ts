import { debuglog } from 'node:util';
import { asFailure, Failure } from '../../contract/failure.ts';
import { withProgramCall } from '../../contract/program-call.ts';
import { refuseDebugger } from '../debugger.ts';
import { groups } from './commands.ts';
import { Desk, type World } from './desk.ts';
import { exitCodeOf, exits } from './exit-codes.ts';
import { helpOn, PROGRAM } from './help.ts';
import { Interrupted } from './interrupted.ts';
import { ReaderGone } from './terminal.ts';
import { UsageError } from './usage-error.ts';
import { readCommandLine, wantsJson } from './usage.ts';

/** What failed by accident, for whoever has to find out: NODE_DEBUG=helmdeck. */
const debug = debuglog('helmdeck');

/** One command, from what was typed to its exit code. */
export async function runCommandLine(args: readonly string[], world: World): Promise<number> {
  const desk = new Desk(world, wantsJson(args));
  try {
    await using closing = desk;
    return await run(args, closing, world.version);
  } catch (error) {
    return told(error, desk);
  } finally {
    await desk.terminal.emptied();
  }
}

async function run(args: readonly string[], desk: Desk, version: string): Promise<number> {
  if (args.length === 0) {
    desk.terminal.tell(...helpOn(groups, ''));
    return exits.usage.code;
  }
  const asked = readCommandLine(groups, args);
  if (asked.to === 'run') {
    const { command, typed } = asked;
    refuseDebugger();
    const code = await command.run(typed, desk).catch((error: unknown) => {
      throw error instanceof UsageError ? new UsageError(error.message, error.about || command.name) : error;
    });
    return code ?? exits.done.code;
  }
  await (asked.to === 'version'
    ? desk.answer({ version }, () => [version])
    : desk.terminal.say(...helpOn(groups, asked.topic).map(withProgramCall)));
  return exits.done.code;
}

function told(error: unknown, { terminal, json, interrupted }: Desk): number {
  if (error instanceof ReaderGone) return exits.done.code;
  if (interrupted.aborted) return interrupted.reason instanceof Interrupted ? interrupted.reason.exitCode : exits.failed.code;
  if (error instanceof UsageError) {
    const more = `See: ${[PROGRAM, 'help', error.about].filter(Boolean).join(' ')}`;
    terminal.tell(...(json ? [JSON.stringify({ error: 'usage', message: error.message })] : [error.message, more]));
    return exits.usage.code;
  }
  const failure = asFailure(error);
  if (!(error instanceof Failure) || failure.code === 'internal') debug('%O', error);
  terminal.tell(json ? JSON.stringify({ error: failure.code, message: failure.message }) : failure.message);
  return exitCodeOf(failure.code);
}
