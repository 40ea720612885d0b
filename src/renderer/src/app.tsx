import { useState } from 'react';
import type { Bridge } from '../../contract/window.ts';
import { useAway, useLocks } from './away.ts';
import { Banner } from './banner.tsx';
import { DraftsProvider } from './facts/drafts.tsx';
import { FactsPage } from './facts/page.tsx';
import { FirstRun, useUnused } from './first-run.tsx';
import { MemoryProvider } from './memory-context.tsx';
import { PacksPage } from './packs/page.tsx';
import { PageAt } from './pages.tsx';
import type { FactsFilter, Place } from './place.ts';
import { Sidebar } from './sidebar.tsx';
import { ActionsProvider } from './ui/actions.tsx';
import { ToastProvider } from './ui/toast.tsx';
import { usePlace } from './use-place.ts';

export function App({ bridge, owner }: { bridge: Bridge; owner: string }) {
  const [subject, setSubject] = useState(owner);
  const [place, go] = usePlace();
  const open = (next: string): void => {
    setSubject(next);
    // What one memory is filtered by, another may not know.
    if (place.at === 'facts') go({ at: 'facts', filter: {} });
  };
  return (
    <MemoryProvider bridge={bridge} subject={subject}>
      <DraftsProvider>
        <ActionsProvider key={subject}>
          <ToastProvider>
            <div className="whole">
              <Banner />
              <Inside place={place} go={go} open={open} />
            </div>
          </ToastProvider>
        </ActionsProvider>
      </DraftsProvider>
    </MemoryProvider>
  );
}

interface Props {
  readonly place: Place;
  readonly go: (place: Place) => void;
  readonly open: (subject: string) => void;
}

/** It begins anew when the key goes: what a page has read, was answered or shows once goes along (R-LOCK-02). */
function Inside({ place, go, open }: Props) {
  return (
    <div className="window" key={useLocks()}>
      <Sidebar place={place} go={go} open={open} />
      <Page place={place} go={go} />
    </div>
  );
}

function Page({ place, go }: Pick<Props, 'place' | 'go'>) {
  if (place.at === 'facts') return <Facts filter={place.filter} go={go} />;
  if (place.at === 'packs') return <PacksPage opened={place.opened} go={go} />;
  return <PageAt at={place.at} />;
}

const ALL: FactsFilter = {};

function Facts({ filter, go }: { filter: FactsFilter; go: (place: Place) => void }) {
  // A tag or a client is part of what is sealed.
  const away = useAway() === true;
  return useUnused() ? <FirstRun go={go} /> : <FactsPage filter={away ? ALL : filter} go={go} />;
}
