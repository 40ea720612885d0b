import { type Query, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Status } from '../../contract/views.ts';
import { ClockBanner } from './clock-banner.tsx';
import { callDesktop } from './desktop-bridge.ts';
import { useDesktopState } from './desktop-state.ts';
import { useContentHidden } from './hidden.ts';
import { describeKey } from './key-state.ts';
import { useMemory } from './memory-context.tsx';
import { type Notice, NoticeBanner } from './notice-banner.tsx';
import { usePolledOperation, useRefresh } from './polling.ts';

const POLL_MS = 5000;
const ROTATION_POLL_MS = 1000;

/** Reports problems of the memory and the listener on every page. Each problem has a remedy (R-WIN-23). */
export function Banner() {
  return (
    <div role="status" aria-label="Memory status">
      <MemoryBanner />
      <ListenerBanner />
    </div>
  );
}

function MemoryBanner() {
  const { call } = useMemory();
  const queries = useQueryClient();
  const refresh = useRefresh();
  const { data, error } = usePolledOperation('status', {}, (known) =>
    known?.store.rotation.at === 'running' ? ROTATION_POLL_MS : POLL_MS,
  );
  const notice = error ? { title: 'This window is disconnected', text: error.message } : data && noticeOf(data);
  const hidden = useContentHidden() === true;
  useEffect(() => {
    if (!hidden) return undefined;
    // Reset all queries except `status`, because cached results must not stay on the screen after a lock (R-LOCK-02).
    const content = { predicate: ({ queryKey }: Query) => queryKey[1] !== 'status' };
    void queries.resetQueries(content);
    return () => void queries.invalidateQueries(content);
  }, [hidden, queries]);
  const unlock = async (): Promise<void> => {
    await call('unlock', {});
    refresh();
  };
  if (notice) return <NoticeBanner notice={notice} run={unlock} />;
  const clock = data?.store.clock;
  return clock?.at === 'ahead' || clock?.at === 'behind' ? <ClockBanner clock={clock} /> : undefined;
}

/** Reports a listener that is paused or failed. Only on the desktop, because a browser loads this window from the listener. */
function ListenerBanner() {
  const { bridge } = useMemory();
  const [listener, setListener] = useDesktopState('listening', 'listening');
  if (listener === undefined || listener.at === 'listening') return undefined;
  const notice =
    listener.at === 'paused'
      ? { title: 'Agent access is paused', button: 'Resume' }
      : { title: "Agents can't connect", text: listener.why, button: 'Try again' };
  return <NoticeBanner notice={notice} run={async () => setListener(await callDesktop(bridge, 'resumeListening'))} />;
}

function noticeOf({ store: { kept, key, file, rotation } }: Status): Notice | undefined {
  if (file.at === 'failed') {
    const what = kept === 'database' ? 'database' : 'memory file';
    return { title: `The ${what} can't be used`, text: `${file.why} ${file.remedy}` };
  }
  if (key.at === 'ephemeral') return describeKey(key);
  if (key.at !== 'ok') return { ...describeKey(key), button: key.at === 'locked' ? 'Unlock' : 'Try again' };
  if (rotation.at === 'running') {
    const { done, of } = rotation;
    return {
      title: 'The key is being rotated',
      text: `${done.toLocaleString()} of ${of.toLocaleString()} entries use the new key.`,
    };
  }
  return undefined;
}
