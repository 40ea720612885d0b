export interface PageOptions {
  readonly preload: string;
  /** For whoever works on it; there is no way from what is packed to a console that could call the memory. */
  readonly devTools: boolean;
}

/** Nothing of Node, nothing shared with us but the preload's two functions. */
export const webPreferences = ({ preload, devTools }: PageOptions) => ({
  preload,
  devTools,
  sandbox: true,
  contextIsolation: true,
  nodeIntegration: false,
  nodeIntegrationInWorker: false,
  nodeIntegrationInSubFrames: false,
  webSecurity: true,
  allowRunningInsecureContent: false,
  webviewTag: false,
  navigateOnDragDrop: false,
  spellcheck: false,
});
