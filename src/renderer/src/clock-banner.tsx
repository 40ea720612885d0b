import { useState } from 'react';
import type { Status } from '../../contract/views.ts';
import { useIsAsked, useMemory } from './memory-context.tsx';
import { Told } from './notice.tsx';
import { sentence } from './standing.ts';
import { fullDate } from './time.ts';
import { Confirm } from './ui/confirm.tsx';
import { useFreshLook } from './watched.ts';

type Clock = Extract<Status['store']['clock'], { at: 'ahead' | 'behind' }>;

const TITLES: Record<Clock['at'], string> = {
  ahead: 'The date of this computer jumped forward',
  behind: 'The date of this computer is in the past',
};

/** While the clock of the machine disagrees with the time that the memory has seen. The owner can say that it is right. */
export function ClockBanner({ clock }: { clock: Clock }) {
  const { ask } = useMemory();
  const isAsked = useIsAsked();
  const lookAgain = useFreshLook();
  const [expired, setExpired] = useState<number>();
  const time = clock.machine;
  const trust = async (): Promise<void> => {
    await ask('trustClock', { time });
    lookAgain();
  };
  const count = async (): Promise<void> => setExpired((await ask('trustClock', { time, dry_run: true })).expired);
  return (
    <>
      <Told
        notice={{ title: TITLES[clock.at], says: `${sentence(clock.why)} ${clock.remedy}`, act: 'The date is right…' }}
        run={isAsked ? trust : count}
      />
      {expired !== undefined && (
        <Confirm title="Is the date right?" act="Trust the clock" run={trust} close={() => setExpired(undefined)}>
          <p>This computer says that it is {fullDate(time)}.</p>
          <p className={expired > 0 ? 'warned' : undefined}>
            {expired === 0
              ? 'No fact has expired by that date.'
              : `${expired === 1 ? 'One fact has' : `${expired.toLocaleString()} facts have`} expired by that date and will be deleted for good.`}
          </p>
        </Confirm>
      )}
    </>
  );
}
