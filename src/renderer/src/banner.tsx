import { type Query, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Status } from '../../contract/views.ts';
import { useAway } from './away.ts';
import { ClockBanner } from './clock-banner.tsx';
import { askDesktop } from './desktop-bridge.ts';
import { useMemory } from './memory-context.tsx';
import { type Notice, Told } from './notice.tsx';
import { standingOf } from './standing.ts';
import { useDesktop } from './use-desktop.ts';
import { useFreshLook, useWatched } from './watched.ts';

const LOOK_MS = 5000;
const TURNING_MS = 1000;

/** Stands over every page while something is not as it should be, and says what to do. */
export function Banner() {
  return (
    <div role="status" aria-label="How the memory stands">
      <OfMemory />
      <OfListener />
    </div>
  );
}

/** While its key, its file or the program is away. */
function OfMemory() {
  const { ask } = useMemory();
  const queries = useQueryClient();
  const lookAgain = useFreshLook();
  const { data, error } = useWatched('status', {}, (known) => (known?.store.rotation.at === 'running' ? TURNING_MS : LOOK_MS));
  const notice = error ? { title: 'This window is cut off', says: error.message } : data && noticeOf(data);
  const away = useAway() === true;
  useEffect(() => {
    if (!away) return undefined;
    // Who locks a memory, or has left it to lock itself, leaves nothing of it on the screen (R-LOCK-02).
    const shown = { predicate: ({ queryKey }: Query) => queryKey[1] !== 'status' };
    void queries.resetQueries(shown);
    // Whoever unlocked it, it is all there again.
    return () => void queries.invalidateQueries(shown);
  }, [away, queries]);
  const unlock = async (): Promise<void> => {
    await ask('unlock', {});
    lookAgain();
  };
  if (notice) return <Told notice={notice} run={unlock} />;
  const clock = data?.store.clock;
  return clock?.at === 'ahead' || clock?.at === 'behind' ? <ClockBanner clock={clock} /> : undefined;
}

/** On the desktop the window also works while no agent can come. */
function OfListener() {
  const { bridge } = useMemory();
  const [listening, setListening] = useDesktop('listening', 'listening');
  if (listening === undefined || listening.at === 'listening') return undefined;
  const notice =
    listening.at === 'paused'
      ? { title: 'Agents cannot reach this memory', act: 'Resume' }
      : { title: 'Agents cannot come', says: listening.why, act: 'Try again' };
  return <Told notice={notice} run={async () => setListening(await askDesktop(bridge, 'resumeListening'))} />;
}

function noticeOf({ store: { key, file, rotation } }: Status): Notice | undefined {
  if (file.at === 'failed') return { title: 'The file of this memory cannot be used', says: `${file.why} ${file.remedy}` };
  if (key.at === 'ephemeral') return standingOf(key);
  if (key.at !== 'ok') return { ...standingOf(key), act: key.at === 'locked' ? 'Unlock' : 'Try again' };
  if (rotation.at === 'running') {
    const { done, of } = rotation;
    return {
      title: 'The key is being rotated',
      says: `${done.toLocaleString()} of ${of.toLocaleString()} entries are under the new one.`,
    };
  }
  return undefined;
}
