import { contextBridge, ipcRenderer, type IpcRendererEvent } from 'electron';
import type { BridgeResponse, PreloadBridge, WindowChange } from '../contract/window.ts';

/** All that the window gets of Electron. It knows no operation by name and no argument, so it never grows. */
const pipe: PreloadBridge = {
  place: 'desktop',
  call: (...asked) => ipcRenderer.invoke('call', ...asked) as Promise<BridgeResponse>,
  onChange(hear) {
    const forward = (_event: IpcRendererEvent, change: WindowChange): void => hear(change);
    ipcRenderer.on('changed', forward);
    return () => void ipcRenderer.off('changed', forward);
  },
};

contextBridge.exposeInMainWorld('helmdeck', pipe);
