import { once } from 'node:events';
import { Failure } from '../../../contract/failure.ts';
import { startRefusal } from '../../roots/refuse-start.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';

export const serve = command({
  name: 'serve',
  description: 'Runs Helmdeck Memory without a window, until Ctrl+C or SIGTERM.',
  details: [
    'Prints the path of the memory, the state of its key, and how to open the window. The last line shows the address. With --json, prints one line with the address, the process id and the folder. Settings come from the environment or from config.json.',
  ],
  examples: ['serve'],
  async run(_typed, context) {
    const { serve: run } = await import('../../roots/serve.ts');
    const { host, interrupted } = context;
    const { version, updates } = host;
    const served = run({
      machine: host,
      version,
      updates,
      ready: ({ url, folder, report }) => context.printResult({ url, pid: process.pid, folder }, () => report),
      ended: async () => {
        // During this wait, the open server keeps the process alive. The event listener for `abort` would not.
        if (!interrupted.aborted) await once(interrupted, 'abort');
      },
    });
    await served.catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.code, startRefusal(error.message), { cause: error });
    });
    return exits.done.code;
  },
});

export const mcp = command({
  name: 'mcp',
  description: 'Serves an MCP client over standard input and output.',
  options: {
    client: {
      value: '<name>',
      description: 'Name of the client. Its token is read from clients/<name>.token in the data folder.',
    },
  },
  details: [
    'MCP clients start this command; you rarely type it. The token comes from the file at the path in HELMDECK_TOKEN_FILE, from HELMDECK_TOKEN, or from --client. The command connects to the running program. If the program is not running yet, the command waits for it.',
  ],
  examples: ['mcp --client claude-desktop'],
  async run({ options: { client } }, context) {
    const { runBridge } = await import('../../../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs');
    const { folder } = context.config;
    await runBridge({
      argv: client === undefined ? [] : ['--client', client],
      environment: { ...context.host.environment, HELMDECK_DATA_DIR: folder },
      stdin: context.host.stdin,
      stdout: context.host.stdout,
    });
    return Number(process.exitCode ?? exits.done.code);
  },
});
