import { useEffect, useState } from 'react';
import type { DesktopCalls } from '../../contract/window.ts';
import { callDesktop } from './desktop-bridge.ts';
import { useMemory } from './memory-context.tsx';

/** Returns a state of the desktop app, and refetches the state after each change of the given kind. Undefined in a browser. */
export function useDesktopState<Name extends 'listening' | 'atLogin'>(name: Name, kind: string) {
  const { bridge } = useMemory();
  const [state, setState] = useState<DesktopCalls[Name]>();
  useEffect(() => {
    if (bridge.place !== 'desktop') return undefined;
    const fetchState = (): void => void callDesktop(bridge, name).then(setState);
    fetchState();
    return bridge.onChange((change) => {
      if (change === undefined || change.kind === kind) fetchState();
    });
  }, [bridge, name, kind]);
  return [state, setState] as const;
}
