import { Failure } from '../../../contract/failure.ts';
import type { OwnerClient } from '../../../listeners/owner-client.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { escapeControls } from '../layout.ts';
import { formatMinute, formatTimeLeft } from '../times.ts';

export const windowList = command({
  name: 'window list',
  description: 'Lists the browsers in which the window of Helmdeck Memory is open.',
  async run(_typed, context) {
    using program = await running(context);
    const answer = await program.call('windowSessions', {});
    await context.printTable(
      answer,
      answer.sessions.map(({ id, browser, opened_at: opened, last_used_at: used, expires_at: end }) => [
        id,
        escapeControls(browser),
        `opened ${formatMinute(opened)}`,
        `used ${formatMinute(used)}`,
        formatTimeLeft(end, context.now),
      ]),
      'The window of Helmdeck Memory is not open in any browser.',
    );
  },
});

export const windowEnd = command({
  name: 'window end',
  description: 'Closes the window in one browser immediately.',
  arguments: { id: { description: 'Id of the browser, as shown by `window list`.' } },
  details: ['To open the window again, create a new link with: helmdeck-memory window'],
  async run({ arguments: { id } }, context) {
    using program = await running(context);
    const answer = await program.call('endWindowSession', { id });
    await context.printResult(answer, () => [`Closed ${answer.id}.`]);
  },
});

export const window = command({
  name: 'window',
  description: 'Prints a link that opens the window in a browser on this machine.',
  details: [
    'The link works only once, and expires after five minutes. Anyone who opens the link can see the memory, so do not share it. Helmdeck Memory must be running.',
  ],
  examples: ['window'],
  async run(_typed, context) {
    using program = await running(context);
    const link = await program.windowLink();
    await context.printResult({ link }, () => [link]);
  },
});

/** Connects to a running Helmdeck Memory. Throws if there is none, because only a running one has browser links. */
async function running(context: CommandContext): Promise<OwnerClient> {
  const { findOwnerClient } = await import('../../../listeners/endpoint.ts');
  const program = await findOwnerClient(context.config.folder);
  if (program) return program;
  throw new Failure('unavailable', 'Helmdeck Memory is not running. Start it with helmdeck-memory serve and try again.');
}
