import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import type { PreloadBridge } from '../../contract/window.ts';
import { App } from './app.tsx';
import { desktopBridge } from './desktop-bridge.ts';
import { newestFacts } from './facts/rows.ts';
import { httpBridge } from './http-bridge.ts';
import { memoryClient } from './memory-context.tsx';
import './ui/page.css';
import './settings/import.css';
import './theme.css';
import './layout.css';
import './facts/facts.css';
import './ui/overlays.css';
import './narrow.css';

declare global {
  interface Window {
    /** Set by the preload script; undefined in a browser. */
    readonly helmdeck?: PreloadBridge;
  }
}

/** The subject whose memory the window opens first. */
const OWNER = 'me';

const queries = new QueryClient({
  // Change events trigger refetches, so queries need no refetch on a timer or on focus.
  defaultOptions: { queries: { staleTime: Infinity, retry: false, refetchOnWindowFocus: false } },
});

const root = document.querySelector('#window');
if (!root) throw new Error('The page has no #window element.');
if (window.helmdeck) followAccent(window.helmdeck);
const bridge = window.helmdeck ? desktopBridge(window.helmdeck) : await httpBridge();
// Prefetch the facts only on the first load, because a reload can restore a page other than Facts.
if (bridge && history.state === null) void queries.prefetchQuery(newestFacts(memoryClient(bridge, OWNER), OWNER));
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      {bridge ? <App bridge={bridge} owner={OWNER} /> : <WindowClosed />}
    </QueryClientProvider>
  </StrictMode>,
);

/** Reloads the style sheet with the system's accent colour when the owner changes that colour. */
function followAccent(preload: Pick<PreloadBridge, 'onChange'>): void {
  let version = 0;
  preload.onChange((change) => {
    if (change?.kind !== 'accent') return;
    version += 1;
    document.querySelector('link[rel=stylesheet][href*="accent"]')?.setAttribute('href', `./accent.css?${version}`);
  });
}

/** Shown in a browser that has no session and did not open a valid link. */
function WindowClosed() {
  return (
    <main className="closed">
      <h1>This window is closed</h1>
      <p>Each window link works once and expires after five minutes. To get a new link, run:</p>
      <code>helmdeck-memory window</code>
      <p>If the terminal does not find this command, run it with npx in the folder of Helmdeck Memory:</p>
      <code>npx helmdeck-memory window</code>
    </main>
  );
}
