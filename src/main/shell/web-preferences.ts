export interface PageOptions {
  readonly preload: string;
  /** For development only: a console in the packaged program could call the memory. */
  readonly devTools: boolean;
}

/** The page has no access to Node, and shares only the preload's functions with this program. */
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
