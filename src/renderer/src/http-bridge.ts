import type { Bridge, BridgeResponse, WindowChange } from '../../contract/window.ts';

const SESSION = 'session';

/** The window in a browser: a session in the page's own storage, which no other port of this machine gets, as a cookie would be. */
export async function httpBridge(): Promise<Bridge | undefined> {
  // In a tab that shows this page a new link changes what stands behind the # and loads nothing.
  addEventListener('hashchange', () => void followLink().then((opened) => opened !== undefined && location.reload()));
  const session = (await followLink()) ?? sessionStorage.getItem(SESSION) ?? undefined;
  if (session === undefined) return undefined;
  const headers = { Authorization: `Bearer ${session}` };
  return {
    place: 'browser',

    async call(subject, name, input, signal) {
      const answer = await fetch(`/window/call/${encodeURIComponent(name)}?subject=${encodeURIComponent(subject)}`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify(input),
        signal: signal ?? null,
      }).catch(() => undefined);
      if (signal?.aborted === true) return givenUp();
      return answer ? crossed(answer) : away();
    },

    onChange(hear) {
      const stop = new AbortController();
      void followForAll(headers, hear, stop.signal);
      return () => stop.abort();
    },
  };
}

/** Behind the # stands what is good once; it leaves the address before anybody can copy it. */
async function followLink(): Promise<string | undefined> {
  const link = new URLSearchParams(location.hash.slice(1)).get('link');
  if (link === null) return undefined;
  history.replaceState(null, '', location.pathname);
  const answer = await fetch('/window/open', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link }),
  }).catch(() => undefined);
  if (answer?.ok !== true) return undefined;
  const { session } = (await answer.json()) as { session: string };
  sessionStorage.setItem(SESSION, session);
  return session;
}

/** What is refused before it reaches the memory is spelled as on every other route. */
async function crossed(answer: Response): Promise<BridgeResponse> {
  const body = (await answer.json().catch(() => undefined)) as
    | BridgeResponse
    | { error: RefusedCode; message: string }
    | undefined;
  if (body === undefined) return away();
  return 'ok' in body ? body : { ok: false, code: body.error, message: body.message };
}

type RefusedCode = Extract<BridgeResponse, { ok: false }>['code'];

const away = (): BridgeResponse => ({
  ok: false,
  code: 'unavailable',
  message: 'Helmdeck Memory is not running; start it, and open its window by the new link.',
});

const givenUp = (): BridgeResponse => ({
  ok: false,
  code: 'cancelled',
  message: 'It was cancelled; start it again if it is still wanted.',
});

const AGAIN_MS = 2000;
const CHANGES = 'changes';

/** A browser makes six connections to one program: one tab reads the changes for all, else the seventh tab would wait for ever. */
async function followForAll(
  headers: Record<string, string>,
  hear: (change: WindowChange | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const others = new BroadcastChannel(CHANGES);
  others.addEventListener('message', ({ data }: MessageEvent<WindowChange | undefined>) => hear(data));
  const tell = (change: WindowChange | undefined): void => {
    hear(change);
    // A channel is one origin's already.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    others.postMessage(change);
  };
  signal.addEventListener('abort', () => others.close(), { once: true });
  // The next one reads on when this tab is closed, or its session ends.
  await navigator.locks.request(CHANGES, { signal }, () => follow(headers, tell, signal)).catch(() => undefined);
}

/** Server-sent events, read by hand because EventSource cannot say who it is. It comes back when the program does. */
async function follow(
  headers: Record<string, string>,
  hear: (change: WindowChange | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const answer = await fetch('/window/events', { headers, signal }).catch(() => undefined);
    if (signal.aborted) return;
    // Whatever is asked now says that this window is closed; nobody tells it of a lock any more.
    if (answer?.status === 401) return hear(undefined);
    if (answer?.ok === true) {
      hear(undefined);
      await read(answer, hear).catch(() => undefined);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function read({ body }: Response, hear: (change: WindowChange) => void): Promise<void> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done = true, value = '' } = (await reader?.read()) ?? {};
    if (done) return;
    const frames = (text + value).split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) if (frame.startsWith('data: ')) hear(JSON.parse(frame.slice('data: '.length)) as WindowChange);
  }
}
