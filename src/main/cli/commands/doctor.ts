import { withCliCommands } from '../../../contract/cli-command.ts';
import type { Finding } from '../../doctor/finding.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { escapeControls } from '../layout.ts';
import { UsageError } from '../usage-error.ts';

export const doctor = command({
  name: 'doctor',
  says: 'Says what is wrong and how to mend it.',
  arguments: { agent: { says: 'openclaw: looks at how OpenClaw is connected instead.', optional: true } },
  more: [
    'It looks at the settings, the data folder, the disk, the port, the running program, the key, every entry, the backups, the recovery key and the agents that were connected, and mends nothing by itself. Each line begins with ok, warn or bad. The exit code is 1 when something is bad.',
    'Of OpenClaw it looks at the configuration and the plugin, starts what its agents and mcporter would start, and tries its own memory_search with a fact that it stores for that and forgets.',
  ],
  examples: ['doctor', 'doctor openclaw', 'doctor --json'],
  async run({ arguments: { agent } }, desk) {
    if (agent !== undefined && agent !== 'openclaw') throw new UsageError('The doctor knows no agent but openclaw.');
    using progress = desk.terminal.showProgress('Looking…');
    const findings = withCliCommands(await (agent === undefined ? ofThis(desk) : ofOpenClaw(desk)));
    progress[Symbol.dispose]();
    const well = findings.every(({ state }) => state !== 'bad');
    await desk.printResult({ ok: well, findings }, () =>
      findings.flatMap(({ check, state, says, remedy }) => [
        `${state.padEnd(4)}  ${check.padEnd(8)}  ${escapeControls(says)}`,
        ...(remedy === undefined ? [] : [`${' '.repeat(16)}${escapeControls(remedy)}`]),
      ]),
    );
    return well ? exits.done.code : exits.failed.code;
  },
});

async function ofThis(desk: CommandContext): Promise<Finding[]> {
  const { examine } = await import('../../doctor/examine.ts');
  return examine({ machine: desk.machine, memory: () => desk.memory(), now: desk.now() });
}

async function ofOpenClaw({ machine, config, environment }: CommandContext): Promise<Finding[]> {
  const { examineOpenClaw } = await import('../../doctor/openclaw.ts');
  const { surroundingsOf } = await import('../../connect/programs.ts');
  return examineOpenClaw(surroundingsOf({ ...machine, environment }), config.folder);
}
