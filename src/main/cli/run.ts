import { debuglog } from 'node:util';
import { withCliCommand } from '../../contract/cli-command.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import { refuseDebugger } from '../roots/debugger-guard.ts';
import { CommandContext, type CommandLineHost } from './command-context.ts';
import { groups } from './commands.ts';
import { Interrupted, OutputClosed, UsageError } from './errors.ts';
import { exitCodeOf, exits } from './exit-codes.ts';
import { formatHelp, PROGRAM } from './help.ts';
import { parseCommandLine, wantsJson } from './usage.ts';

/** Prints unexpected errors with their stack if NODE_DEBUG=helmdeck is set. */
const debug = debuglog('helmdeck');

/** Runs one command line and returns its exit code. */
export async function runCommandLine(args: readonly string[], world: CommandLineHost): Promise<number> {
  const context = new CommandContext(world, wantsJson(args));
  try {
    await using closing = context;
    return await run(args, closing, world.version);
  } catch (error) {
    return told(error, context);
  } finally {
    await context.terminal.flush();
  }
}

async function run(args: readonly string[], context: CommandContext, version: string): Promise<number> {
  if (args.length === 0) {
    context.terminal.printToStderr(...formatHelp(groups, ''));
    return exits.usage.code;
  }
  const asked = parseCommandLine(groups, args);
  if (asked.to === 'run') {
    const { command, typed } = asked;
    refuseDebugger();
    const code = await command.run(typed, context).catch((error: unknown) => {
      throw error instanceof UsageError ? new UsageError(error.message, error.helpTopic || command.name) : error;
    });
    return code ?? exits.done.code;
  }
  await (asked.to === 'version'
    ? context.printResult({ version }, () => [version])
    : context.terminal.print(...formatHelp(groups, asked.topic).map(withCliCommand)));
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
