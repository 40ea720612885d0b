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

/** Prints unexpected errors with their stack traces, if the environment sets NODE_DEBUG=helmdeck. */
const debug = debuglog('helmdeck');

export async function runCommandLine(args: readonly string[], host: CommandLineHost): Promise<number> {
  const context = new CommandContext(host, wantsJson(args));
  try {
    await using closing = context;
    return await run(args, closing, host.version);
  } catch (error) {
    return printError(error, context);
  } finally {
    await context.terminal.flush();
  }
}

async function run(args: readonly string[], context: CommandContext, version: string): Promise<number> {
  if (args.length === 0) {
    context.terminal.printToStderr(...formatHelp(groups, ''));
    return exits.usage.code;
  }
  const parsed = parseCommandLine(groups, args);
  if (parsed.to === 'run') {
    const { command, typed } = parsed;
    refuseDebugger();
    const code = await command.run(typed, context).catch((error: unknown) => {
      if (!(error instanceof UsageError) || error.helpTopic !== '' || command.name === 'help') throw error;
      throw new UsageError(error.message, command.name);
    });
    return code ?? exits.done.code;
  }
  await (parsed.to === 'version'
    ? context.printResult({ version }, () => [version])
    : context.terminal.print(...formatHelp(groups, parsed.topic).map(withCliCommand)));
  return exits.done.code;
}

function printError(error: unknown, { terminal, json, interrupted }: CommandContext): number {
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
