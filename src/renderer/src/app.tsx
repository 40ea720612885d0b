import { type ComponentType, useCallback, useEffect, useState } from 'react';
import type { Bridge } from '../../contract/window.ts';
import { ActivityPage } from './activity/page.tsx';
import { Banner } from './banner.tsx';
import { ConnectPage } from './connect/page.tsx';
import { EmbeddingsPage } from './embeddings/page.tsx';
import { DraftsProvider } from './facts/drafts.tsx';
import { FactsPage } from './facts/page.tsx';
import { FirstRun, useUnused } from './first-run.tsx';
import { useContentHidden, useHideCount } from './hidden.ts';
import { InboxPage } from './inbox/page.tsx';
import { LearnedPage } from './learned/page.tsx';
import { MemoryProvider } from './memory-context.tsx';
import { PacksPage } from './packs/page.tsx';
import type { FactsFilter, Place } from './place.ts';
import { SettingsPage } from './settings/page.tsx';
import { Sidebar } from './sidebar.tsx';
import { ActionsProvider } from './ui/actions.tsx';
import { ToastProvider } from './ui/toast.tsx';

export function App({ bridge, owner }: { bridge: Bridge; owner: string }) {
  const [subject, setSubject] = useState(owner);
  const [place, go] = usePlace();
  const open = (next: string): void => {
    setSubject(next);
    // Clear the filter, because the newly opened memory may have no matching fact.
    if (place.at === 'facts') go({ at: 'facts', filter: {} });
  };
  return (
    <MemoryProvider bridge={bridge} subject={subject}>
      <DraftsProvider>
        <ActionsProvider key={subject}>
          <ToastProvider>
            <div className="app">
              <Banner />
              <MemoryView place={place} go={go} open={open} />
            </div>
          </ToastProvider>
        </ActionsProvider>
      </DraftsProvider>
    </MemoryProvider>
  );
}

const HOME: Place = { at: 'facts', filter: {} };

/** Returns the place stored in a history state. The cast is safe, because only this module writes the state. */
const placeOf = (state: unknown): Place => (state as Place | null) ?? HOME;

const pageOf = (place: Place): string => JSON.stringify([place.at, place.at === 'packs' && place.opened]);

/** Stores the open page and its filter in the browser's history, so that Back, Forward and Reload work (R-USE-03). */
function usePlace(): readonly [Place, (place: Place) => void] {
  const [place, setPlace] = useState(() => placeOf(history.state));
  useEffect(() => {
    const onPopState = ({ state }: PopStateEvent): void => setPlace(placeOf(state));
    addEventListener('popstate', onPopState);
    return () => removeEventListener('popstate', onPopState);
  }, []);
  const go = useCallback((next: Place): void => {
    // Only a change of page adds a history entry, because a filter can change with every keystroke.
    if (pageOf(placeOf(history.state)) === pageOf(next)) history.replaceState(next, '');
    else history.pushState(next, '');
    setPlace(next);
  }, []);
  return [place, go];
}

interface Props {
  readonly place: Place;
  readonly go: (place: Place) => void;
  readonly open: (subject: string) => void;
}

/** Remounts all pages when the memory is locked, so that no component keeps content in its state (R-LOCK-02). */
function MemoryView({ place, go, open }: Props) {
  return (
    <div className="window" key={useHideCount()}>
      <Sidebar place={place} go={go} open={open} />
      <Page place={place} go={go} />
    </div>
  );
}

const PAGES: Readonly<Record<Exclude<Place['at'], 'facts' | 'packs'>, ComponentType<Pick<Props, 'go'>>>> = {
  inbox: InboxPage,
  activity: ActivityPage,
  learned: LearnedPage,
  clients: ConnectPage,
  embeddings: EmbeddingsPage,
  settings: SettingsPage,
};

function Page({ place, go }: Pick<Props, 'place' | 'go'>) {
  if (place.at === 'facts') return <Facts place={place} go={go} />;
  if (place.at === 'packs') return <PacksPage opened={place.opened} go={go} />;
  const Shown = PAGES[place.at];
  return <Shown go={go} />;
}

const NO_FILTER: FactsFilter = {};

function Facts({ place: { filter, opened }, go }: { place: Place & { readonly at: 'facts' }; go: (place: Place) => void }) {
  // While the memory is locked, the filter must not be shown, because names of tags and clients are encrypted content too.
  const hidden = useContentHidden() === true;
  if (useUnused()) return <FirstRun go={go} />;
  return <FactsPage filter={hidden ? NO_FILTER : filter} opened={hidden ? undefined : opened} go={go} />;
}
