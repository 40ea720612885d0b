import { Failure } from '../../../contract/failure.ts';
import type { OwnerClient } from '../../../listeners/owner-client.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { columns, escapeControls } from '../layout.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';

export const windowList = command({
  name: 'window list',
  says: 'Lists the browsers that have the window open.',
  async run(_typed, desk) {
    using program = await running(desk);
    const answer = await program.call('windowSessions', {});
    await desk.printResult(answer, () =>
      columns(
        answer.sessions.map(({ id, browser, opened_at: opened, last_used_at: used, expires_at: end }) => [
          id,
          escapeControls(browser),
          `opened ${formatMinute(opened)}`,
          `used ${formatMinute(used)}`,
          formatTimeLeft(end, desk.now()),
        ]),
      ),
    );
    if (!desk.json && answer.sessions.length === 0) desk.terminal.printToStderr('No browser has the window open.');
  },
});

export const windowEnd = command({
  name: 'window end',
  says: 'Closes the window in one browser, at once.',
  arguments: { id: { says: 'Its id in the list.' } },
  more: ['helmdeck-memory window makes a new link for it.'],
  async run({ arguments: { id } }, desk) {
    using program = await running(desk);
    const answer = await program.call('endWindowSession', { id });
    await desk.printResult(answer, () => [`Ended ${answer.id}.`]);
  },
});

export const window = command({
  name: 'window',
  says: 'Prints a link that opens the window in a browser of this machine.',
  more: [
    'The link is good once, and for five minutes. Whoever follows it first sees the memory, so keep it to yourself. The program must be running.',
  ],
  examples: ['window'],
  async run(_typed, desk) {
    using program = await running(desk);
    const link = await program.windowLink();
    await desk.printResult({ link }, () => [link]);
  },
});

/** Sessions and links live in the program alone. */
async function running(desk: CommandContext): Promise<OwnerClient> {
  const { findOwnerClient: findProgram } = await import('../../../listeners/endpoint.ts');
  const program = await findProgram(desk.config.folder);
  if (program) return program;
  throw new Failure('unavailable', 'Helmdeck Memory is not running; start it with helmdeck-memory serve, and try again.');
}
