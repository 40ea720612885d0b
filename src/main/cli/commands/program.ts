import { once } from 'node:events';
import { Failure } from '../../../contract/failure.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';

export const serve = command({
  name: 'serve',
  says: 'Runs the program without a window, until Ctrl+C or SIGTERM.',
  more: [
    'It says where the memory is, how its key stands, how to open the window, and in its last line the address; with --json all of it as one line. Settings stand in the environment or in config.json.',
  ],
  examples: ['serve'],
  async run(_typed, desk) {
    const { readyLine, serve: run, windowLines } = await import('../../serve.ts');
    const { machine, version, updates, interrupted } = desk;
    const served = run({
      machine,
      version,
      updates,
      ready: (running) => {
        const { url, folder, report } = running;
        return desk.printResult({ url, pid: process.pid, folder }, () => [
          ...report,
          ...windowLines(running, desk.terminal.outputIsTerminal),
          readyLine(running),
        ]);
      },
      ended: async () => {
        // Waiting for a signal alone keeps no program running; the listener does.
        if (!interrupted.aborted) await once(interrupted, 'abort');
      },
    });
    await served.catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.code, `Helmdeck Memory cannot start: ${error.message}`, { cause: error });
    });
    return exits.done.code;
  },
});

export const mcp = command({
  name: 'mcp',
  says: 'Connects a client that speaks MCP over standard input and output.',
  options: { client: { value: '<name>', says: 'Takes the token from clients/<name>.token in the data folder.' } },
  more: [
    'This is what such a client starts; nobody types it. The token is in the file that HELMDECK_TOKEN_FILE names, or in HELMDECK_TOKEN, or where --client says. It reaches the program that runs, and waits for one that does not run yet.',
  ],
  examples: ['mcp --client claude-desktop'],
  async run({ options: { client } }, desk) {
    const { runBridge } = await import('../../../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs');
    const { folder } = desk.config;
    await runBridge({
      argv: client === undefined ? [] : ['--client', client],
      environment: { ...desk.machine.environment, HELMDECK_DATA_DIR: folder },
      stdin: desk.streams.stdin,
      stdout: desk.streams.stdout,
    });
    return Number(process.exitCode ?? exits.done.code);
  },
});
