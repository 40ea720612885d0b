import { debuglog } from 'node:util';
import { withCliCommand } from '../../contract/cli-command.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import { refuseDebugger } from '../debugger-guard.ts';
import { CommandContext, type CommandLineHost } from './command-context.ts';
import { groups } from './commands.ts';
import { exitCodeOf, exits } from './exit-codes.ts';
import { formatHelp, PROGRAM } from './help.ts';
import { Interrupted } from './interrupted.ts';
import { OutputClosed } from './terminal.ts';
import { UsageError } from './usage-error.ts';
import { parseCommandLine, wantsJson } from './usage.ts';

/** What failed by accident, for whoever has to find out: NODE_DEBUG=helmdeck. */
const debug = debuglog('helmdeck');

/** One command, from what was typed to its exit code. */
export async function runCommandLine(args: readonly string[], world: CommandLineHost): Promise<number> {
  const desk = new CommandContext(world, wantsJson(args));
  try {
    await using closing = desk;
    return await run(args, closing, world.version);
  } catch (error) {
    return told(error, desk);
  } finally {
    await desk.terminal.flush();
  }
}

async function run(args: readonly string[], desk: CommandContext, version: string): Promise<number> {
  if (args.length === 0) {
    desk.terminal.printToStderr(...formatHelp(groups, ''));
    return exits.usage.code;
  }
  const asked = parseCommandLine(groups, args);
  if (asked.to === 'run') {
    const { command, typed } = asked;
    refuseDebugger();
    const code = await command.run(typed, desk).catch((error: unknown) => {
      throw error instanceof UsageError ? new UsageError(error.message, error.helpTopic || command.name) : error;
    });
    return code ?? exits.done.code;
  }
  await (asked.to === 'version'
    ? desk.printResult({ version }, () => [version])
    : desk.terminal.print(...formatHelp(groups, asked.topic).map(withCliCommand)));
  return exits.done.code;
}

function told(error: unknown, { terminal, json, interrupted }: CommandContext): number {
  if (error instanceof OutputClosed) return exits.done.code;
  if (interrupted.aborted) return interrupted.reason instanceof Interrupted ? interrupted.reason.exitCode : exits.failed.code;
  if (error instanceof UsageError) {
    const more = `See: ${[PROGRAM, 'help', error.helpTopic].filter(Boolean).join(' ')}`;
    terminal.printToStderr(...(json ? [JSON.stringify({ error: 'usage', message: error.message })] : [error.message, more]));
    return exits.usage.code;
  }
  const failure = asFailure(error);
  if (!(error instanceof Failure) || failure.code === 'internal') debug('%O', error);
  terminal.printToStderr(json ? JSON.stringify({ error: failure.code, message: failure.message }) : failure.message);
  return exitCodeOf(failure.code);
}
