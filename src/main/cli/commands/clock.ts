import type { ClockState } from '../../../contract/status.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { formatCount } from '../layout.ts';
import { declined } from './forget.ts';

export const clockStatus = command({
  name: 'clock status',
  says: 'Compares the clock of this machine with the time that the memory has seen.',
  more: ['The exit code is 1 while the two disagree.'],
  async run(_typed, desk) {
    const { clock } = (await (await desk.memory()).call('status', {})).store;
    await desk.printResult(clock, () => clockLines(clock));
    return clock.at === 'ahead' || clock.at === 'behind' ? exits.failed.code : exits.done.code;
  },
});

export const clockTrust = command({
  name: 'clock trust',
  says: 'Confirms that this clock is right, and deletes what has expired by it.',
  options: { yes: { says: 'Does not ask; needed where nobody can be asked.' } },
  more: [
    'When the clock has jumped by more than a day, the memory hides what seems to have expired and deletes nothing. This says that the jump was right.',
    'When the memory has seen a later time than the clock tells, because a clock was wrong before, this takes the time back. Tokens and facts that only seemed expired are valid again.',
  ],
  examples: ['clock trust'],
  async run({ options: { yes } }, desk) {
    const memory = await desk.memory();
    const time = new Date(desk.now()).toISOString();
    const question = async (): Promise<string> => {
      const { expired } = await memory.call('trustClock', { time, dry_run: true });
      return `This machine says that it is ${time}. Is that right? ${formatCount(expired, 'fact')} expired by then will be deleted for good.`;
    };
    if (!(await desk.confirm(yes, question))) return declined(desk);
    const trusted = await memory.call('trustClock', { time });
    await desk.printResult(trusted, () => [
      'The clock is trusted.',
      ...(trusted.expired > 0 ? [`${formatCount(trusted.expired, 'fact')} had expired by it.`] : []),
    ]);
    return exits.done.code;
  },
});

export function clockLines(clock: ClockState): string[] {
  if (clock.at === 'ok') return ['ok'];
  if (clock.at === 'unchecked') return ['not compared, because the key of the memory is not available'];
  return [`${clock.at}: ${clock.why}.`, clock.remedy];
}
