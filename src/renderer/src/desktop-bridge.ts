import { Failure } from '../../contract/failure.ts';
import type { Bridge, DesktopCalls, PreloadBridge } from '../../contract/window.ts';

/**
 * Adds cancellation to the preload script's bridge. The preload script cannot pass an AbortSignal to the main process, so an abort
 * sends a `cancel` call with the id of the cancelled call.
 */
export const desktopBridge = (preload: PreloadBridge): Bridge => ({
  place: preload.place,
  onChange: preload.onChange,
  call(subject, name, input, signal) {
    if (!signal) return preload.call(subject, name, input);
    const callId = crypto.randomUUID();
    signal.addEventListener('abort', () => void preload.call(subject, 'cancel', { call: callId }), { once: true });
    return preload.call(subject, name, input, callId);
  },
});

/**
 * Tells the main process whether edits are unsaved, so that the process asks before it quits. In a browser, `beforeunload` asks
 * instead.
 */
export function reportUnsaved(bridge: Bridge, unsaved: boolean): void {
  if (bridge.place === 'desktop') void bridge.call('me', 'unsaved', { unsaved });
}

/** Makes a call that only the desktop app supports. The subject has no effect, but the call format requires one. */
export async function callDesktop<Name extends Exclude<keyof DesktopCalls, 'cancel' | 'unsaved'>>(
  bridge: Bridge,
  name: Name,
  input: object = {},
): Promise<DesktopCalls[Name] | undefined> {
  const response = await bridge.call('me', name, input);
  return response.ok ? (response.value as DesktopCalls[Name]) : undefined;
}

/** Opens the folder of the Claude Desktop bundle in the system's file manager. */
export async function showBundle(bridge: Bridge): Promise<void> {
  const response = await bridge.call('me', 'showBundle', {});
  if (!response.ok) throw new Failure(response.code, response.message);
}
