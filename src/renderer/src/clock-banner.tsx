import { useState } from 'react';
import type { Status } from '../../contract/views.ts';
import { sentence } from './key-state.ts';
import { useDesktopConfirms, useMemory } from './memory-context.tsx';
import { NoticeBanner } from './notice-banner.tsx';
import { useRefresh } from './polling.ts';
import { counted, fullDate } from './time.ts';
import { Confirm } from './ui/confirm.tsx';

type Clock = Extract<Status['store']['clock'], { at: 'ahead' | 'behind' }>;

const TITLES: Record<Clock['at'], string> = {
  ahead: "This computer's date jumped forward",
  behind: "This computer's date is earlier than expected",
};

/** Shown while the system clock disagrees with the times in the memory. The owner can confirm the system clock (R-TIME-09). */
export function ClockBanner({ clock }: { clock: Clock }) {
  const { call } = useMemory();
  const desktopConfirms = useDesktopConfirms();
  const refresh = useRefresh();
  const [expired, setExpired] = useState<number>();
  const time = clock.machine;
  const trust = async (): Promise<void> => {
    await call('trustClock', { time });
    refresh();
  };
  const countExpired = async (): Promise<void> => setExpired((await call('trustClock', { time, dry_run: true })).expired);
  return (
    <>
      <NoticeBanner
        notice={{ title: TITLES[clock.at], text: `${sentence(clock.why)} ${clock.remedy}`, button: 'Confirm the date…' }}
        run={desktopConfirms ? trust : countExpired}
      />
      {expired !== undefined && (
        <Confirm title="Is this date correct?" button="Confirm" run={trust} close={() => setExpired(undefined)}>
          <p>This computer says that today is {fullDate(time)}.</p>
          <p className={expired > 0 ? 'warned' : undefined}>
            {expired === 0
              ? 'If this date is correct, no facts have expired.'
              : `If this date is correct, ${counted(expired, 'fact')} ${expired === 1 ? 'has' : 'have'} expired and will be permanently deleted.`}
          </p>
        </Confirm>
      )}
    </>
  );
}
