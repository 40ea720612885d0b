import { Failure } from '../../../contract/failure.ts';
import { command } from '../command.ts';

export const window = command({
  name: 'window',
  says: 'Prints a link that opens the window in a browser of this machine.',
  more: [
    'The link is good once, and for five minutes. Whoever follows it first sees the memory, so keep it to yourself. The program must be running.',
  ],
  examples: ['window'],
  async run(_typed, desk) {
    const { findProgram } = await import('../../../listeners/endpoint.ts');
    using program = await findProgram(desk.config.folder);
    if (!program) {
      throw new Failure(
        'store_unavailable',
        'Helmdeck Memory is not running; start it with helmdeck-memory serve, and try again.',
      );
    }
    const link = await program.windowLink();
    await desk.answer({ link }, () => [link]);
  },
});
