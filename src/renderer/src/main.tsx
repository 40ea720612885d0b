import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import type { PreloadBridge } from '../../contract/window.ts';
import { App } from './app.tsx';
import { Closed } from './closed.tsx';
import { desktopBridge } from './desktop-bridge.ts';
import { newestOf } from './facts/rows.ts';
import { followAccent } from './follow-accent.ts';
import { httpBridge } from './http-bridge.ts';
import { clientOf } from './memory.ts';
import './theme.css';

declare global {
  interface Window {
    /** Put there by the preload; in a browser there is none. */
    readonly helmdeck?: PreloadBridge;
  }
}

/** Whose memory is open at first. */
const OWNER = 'me';

const queries = new QueryClient({
  // What changes is told; asking again by the clock or on focus would only repeat it.
  defaultOptions: { queries: { staleTime: Infinity, retry: false, refetchOnWindowFocus: false } },
});

const place = document.querySelector('#window');
if (!place) throw new Error('The page has no place for the window.');
if (window.helmdeck) followAccent(window.helmdeck);
const bridge = window.helmdeck ? desktopBridge(window.helmdeck) : await httpBridge();
// Where a page is shown anew it goes on where it was.
if (bridge && history.state === null) void queries.prefetchQuery(newestOf(clientOf(bridge, OWNER), OWNER));
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>{bridge ? <App bridge={bridge} owner={OWNER} /> : <Closed />}</QueryClientProvider>
  </StrictMode>,
);
