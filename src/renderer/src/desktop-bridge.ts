import { Failure } from '../../contract/failure.ts';
import type { Bridge, DesktopCalls, PreloadBridge } from '../../contract/window.ts';

/** The window in Electron: what the preload put there, and the way to give up a call. */
export const desktopBridge = (pipe: PreloadBridge): Bridge => ({
  place: pipe.place,
  onChange: pipe.onChange,
  call(subject, name, input, signal) {
    if (!signal) return pipe.call(subject, name, input);
    const word = crypto.randomUUID();
    signal.addEventListener('abort', () => void pipe.call(subject, 'cancel', { word }), { once: true });
    return pipe.call(subject, name, input, word);
  },
});

/** The desktop asks before it quits while something is not saved; a browser is told by the page itself. */
export function tellUnsaved(bridge: Bridge, unsaved: boolean): void {
  if (bridge.place === 'desktop') void bridge.call('me', 'unsaved', { unsaved });
}

/** What only the desktop can be asked. It takes this for no memory in particular; a name is part of every call. */
export async function askDesktop<Name extends Exclude<keyof DesktopCalls, 'cancel' | 'unsaved'>>(
  bridge: Bridge,
  name: Name,
  input: object = {},
): Promise<DesktopCalls[Name] | undefined> {
  const crossed = await bridge.call('me', name, input);
  return crossed.ok ? (crossed.value as DesktopCalls[Name]) : undefined;
}

/** A page opens nothing; the desktop shows where it lies. */
export async function showBundle(bridge: Bridge): Promise<void> {
  const crossed = await bridge.call('me', 'showBundle', {});
  if (!crossed.ok) throw new Failure(crossed.code, crossed.message);
}
