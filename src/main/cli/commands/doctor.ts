import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { visible } from '../layout.ts';

export const doctor = command({
  name: 'doctor',
  says: 'Says what is wrong and how to mend it.',
  more: [
    'It looks at the settings, the data folder, the disk, the port, the running program, the key, every entry, the backups and the recovery key, and mends nothing by itself. Each line begins with ok, warn or bad. The exit code is 1 when something is bad.',
  ],
  examples: ['doctor', 'doctor --json'],
  async run(_typed, desk) {
    const { examine } = await import('../../doctor/examine.ts');
    using progress = desk.terminal.working('Looking…');
    const findings = await examine({ machine: desk.machine, memory: () => desk.memory(), now: desk.now() });
    progress[Symbol.dispose]();
    const well = findings.every(({ state }) => state !== 'bad');
    await desk.answer({ ok: well, findings }, () =>
      findings.flatMap(({ check, state, says, remedy }) => [
        `${state.padEnd(4)}  ${check.padEnd(8)}  ${visible(says)}`,
        ...(remedy === undefined ? [] : [`${' '.repeat(16)}${visible(remedy)}`]),
      ]),
    );
    return well ? exits.done.code : exits.failed.code;
  },
});
