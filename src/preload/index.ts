import { contextBridge, ipcRenderer, type IpcRendererEvent } from 'electron';
import type { BridgeResponse, PreloadBridge, WindowChange } from '../contract/window.ts';

/** The only Electron functions that the window can use. Forwards calls unchecked: the main process checks names and arguments. */
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
