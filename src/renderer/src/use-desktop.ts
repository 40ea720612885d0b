import { useEffect, useState } from 'react';
import type { DesktopCalls } from '../../contract/window.ts';
import { askDesktop } from './desktop-bridge.ts';
import { useMemory } from './memory-context.tsx';

/** What the desktop says, asked again when it tells of a change of this kind; in a browser nobody does. */
export function useDesktop<Name extends 'listening' | 'atLogin'>(name: Name, kind: string) {
  const { bridge } = useMemory();
  const [known, setKnown] = useState<DesktopCalls[Name]>();
  useEffect(() => {
    if (bridge.place !== 'desktop') return undefined;
    const look = (): void => void askDesktop(bridge, name).then(setKnown);
    look();
    return bridge.onChange((change) => {
      if (change === undefined || change.kind === kind) look();
    });
  }, [bridge, name, kind]);
  return [known, setKnown] as const;
}
