export interface PageOptions {
  readonly preload: string;
  /** True only in development: in the packaged program, a developer console could call the memory. */
  readonly devTools: boolean;
}

/** Returns preferences that deny the page access to Node. The page can use only the functions of the preload script. */
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
