import { withCliCommands } from '../../../contract/cli-command.ts';
import type { Finding } from '../../doctor/finding.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls } from '../layout.ts';

export const doctor = command({
  name: 'doctor',
  description: 'Finds problems and says how to fix them.',
  arguments: {
    agent: { description: 'With `openclaw`, checks the connection of OpenClaw instead of the memory.', optional: true },
  },
  details: [
    'Checks the settings, the data folder, the disk, the port, the running program, the key, every entry, the backups, the recovery key and the connected agents. It changes nothing. Each line starts with ok, warn or bad. The exit code is 1 if any line is bad.',
    "For OpenClaw, checks its configuration and plugin, starts the commands that its agents and mcporter would start, and tests OpenClaw's memory_search with a temporary fact.",
  ],
  examples: ['doctor', 'doctor openclaw', 'doctor --json'],
  async run({ arguments: { agent } }, context) {
    if (agent !== undefined && agent !== 'openclaw') throw new UsageError('The only agent that doctor can check is openclaw.');
    using progress = context.terminal.showProgress('Checking…');
    const findings = withCliCommands(await (agent === undefined ? checkMemory(context) : checkOpenClaw(context)));
    progress[Symbol.dispose]();
    const well = findings.every(({ state }) => state !== 'bad');
    await context.printResult({ ok: well, findings }, () =>
      findings.flatMap(({ check, state, says, remedy }) => [
        `${state.padEnd(4)}  ${check.padEnd(8)}  ${escapeControls(says)}`,
        ...(remedy === undefined ? [] : [`${' '.repeat(16)}${escapeControls(remedy)}`]),
      ]),
    );
    return well ? exits.done.code : exits.failed.code;
  },
});

async function checkMemory(context: CommandContext): Promise<Finding[]> {
  const { examine } = await import('../../doctor/examine.ts');
  return examine({ machine: context.host, memory: () => context.memory(), now: context.now });
}

async function checkOpenClaw({ settings, config }: CommandContext): Promise<Finding[]> {
  const { examineOpenClaw } = await import('../../doctor/openclaw.ts');
  const { localMachine } = await import('../../connect/programs.ts');
  return examineOpenClaw(localMachine(settings), config.folder);
}
