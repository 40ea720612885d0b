import type { ClockState } from '../../../contract/status.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { formatCount } from '../layout.ts';

export const clockStatus = command({
  name: 'clock status',
  description: 'Compares the system clock with the last time recorded in the memory.',
  details: ['The exit code is 1 if the two times disagree.'],
  async run(_typed, context) {
    const { clock } = (await context.call('status', {})).store;
    await context.printResult(clock, () => clockLines(clock));
    return clock.at === 'ahead' || clock.at === 'behind' ? exits.failed.code : exits.done.code;
  },
});

export const clockTrust = command({
  name: 'clock trust',
  description: 'Confirms that the system clock is right, and deletes facts that have expired.',
  options: { yes: { description: 'Skips the confirmation. Required without a terminal.' } },
  details: [
    'After the clock jumps forward by more than a day, the memory hides facts that seem to have expired, but deletes nothing. This command confirms that the jump was right.',
    'If the clock was wrong before, the memory can have recorded a later time than the clock shows. This command then sets the recorded time back. Tokens and facts that only seemed to have expired become valid again.',
  ],
  examples: ['clock trust'],
  async run({ options: { yes } }, context) {
    const time = new Date(context.now).toISOString();
    const question = async (): Promise<string> => {
      const { expired } = await context.call('trustClock', { time, dry_run: true });
      return `The system clock shows ${time}. Is that right? ${formatCount(expired, 'fact')} that expired before then will be deleted permanently.`;
    };
    if (!(await context.confirm(yes, question))) return exits.failed.code;
    const trusted = await context.call('trustClock', { time });
    await context.printResult(trusted, () => [
      'The clock is confirmed.',
      ...(trusted.expired > 0 ? [`${formatCount(trusted.expired, 'fact')} had expired.`] : []),
    ]);
    return exits.done.code;
  },
});

export function clockLines(clock: ClockState): string[] {
  if (clock.at === 'ok') return ['ok'];
  if (clock.at === 'unchecked') return ['not checked, because the key of the memory is unavailable'];
  return [`${clock.at}: ${clock.why}.`, clock.remedy];
}
