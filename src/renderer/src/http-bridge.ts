import type { Bridge, BridgeResponse, WindowChange } from '../../contract/window.ts';

const SESSION = 'session';

/**
 * Creates the bridge for a browser. The session is stored in `sessionStorage`, because a cookie would be sent to every port of this
 * machine. Returns undefined if there is no session.
 */
export async function httpBridge(): Promise<Bridge | undefined> {
  // A new link opened in this tab changes only the URL fragment, so the browser does not reload the page by itself.
  addEventListener('hashchange', () => void followLink().then((session) => session !== undefined && location.reload()));
  const session = (await followLink()) ?? sessionStorage.getItem(SESSION) ?? undefined;
  if (session === undefined) return undefined;
  const headers = { Authorization: `Bearer ${session}` };
  return {
    place: 'browser',

    async call(subject, name, input, signal) {
      const response = await fetch(`/window/call/${encodeURIComponent(name)}?subject=${encodeURIComponent(subject)}`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify(input),
        signal: signal ?? null,
      }).catch(() => undefined);
      if (signal?.aborted === true) return CANCELLED;
      return response ? bridgeResponse(response) : UNAVAILABLE;
    },

    onChange(listener) {
      const stop = new AbortController();
      void shareChanges(headers, listener, stop.signal);
      return () => stop.abort();
    },
  };
}

/** Exchanges the one-time link in the URL fragment for a session. First removes the link from the address bar. */
async function followLink(): Promise<string | undefined> {
  const link = new URLSearchParams(location.hash.slice(1)).get('link');
  if (link === null) return undefined;
  history.replaceState(null, '', location.pathname);
  const response = await fetch('/window/open', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link }),
  }).catch(() => undefined);
  if (response?.ok !== true) return undefined;
  const { session } = (await response.json()) as { session: string };
  sessionStorage.setItem(SESSION, session);
  return session;
}

type ErrorCode = Extract<BridgeResponse, { ok: false }>['code'];

/** Reads a response. The listener refuses some requests with its own error format, which this function converts. */
async function bridgeResponse(response: Response): Promise<BridgeResponse> {
  const body = (await response.json().catch(() => undefined)) as
    | BridgeResponse
    | { error: ErrorCode; message: string }
    | undefined;
  if (body === undefined) return UNAVAILABLE;
  return 'ok' in body ? body : { ok: false, code: body.error, message: body.message };
}

const UNAVAILABLE: BridgeResponse = {
  ok: false,
  code: 'unavailable',
  message: 'Helmdeck Memory is not running. Start it and open the window with the new link.',
};

const CANCELLED: BridgeResponse = { ok: false, code: 'cancelled', message: 'You cancelled this run.' };

const RECONNECT_MS = 2000;
const CHANGES = 'changes';

/**
 * Reads the change events in only one tab, which shares them with the other tabs. Browsers open at most six connections per host,
 * so a seventh tab would otherwise hang (R-STAY-04).
 */
async function shareChanges(
  headers: Record<string, string>,
  listener: (change: WindowChange | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const channel = new BroadcastChannel(CHANGES);
  channel.addEventListener('message', ({ data }: MessageEvent<WindowChange | undefined>) => listener(data));
  const publish = (change: WindowChange | undefined): void => {
    listener(change);
    // A BroadcastChannel delivers messages only within its origin, so there is no target origin to pass.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    channel.postMessage(change);
  };
  signal.addEventListener('abort', () => channel.close(), { once: true });
  // When this tab closes or its session ends, the Web Lock passes to another tab.
  await navigator.locks.request(CHANGES, { signal }, () => readChanges(headers, publish, signal)).catch(() => undefined);
}

/**
 * Reads server-sent events with `fetch`, because EventSource cannot send an Authorization header. Reconnects until the session
 * ends.
 */
async function readChanges(
  headers: Record<string, string>,
  publish: (change: WindowChange | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const response = await fetch('/window/events', { headers, signal }).catch(() => undefined);
    if (signal.aborted) return;
    // The session has ended, so this window would not be notified of a lock. Cause a refetch, which fails and hides the content.
    if (response?.status === 401) return publish(undefined);
    if (response?.ok === true) {
      publish(undefined);
      await readEvents(response, publish).catch(() => undefined);
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

async function readEvents({ body }: Response, publish: (change: WindowChange) => void): Promise<void> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done = true, value = '' } = (await reader?.read()) ?? {};
    if (done) return;
    const events = (text + value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) if (event.startsWith('data: ')) publish(JSON.parse(event.slice('data: '.length)) as WindowChange);
  }
}
