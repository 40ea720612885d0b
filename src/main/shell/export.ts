import { chmodSync } from 'node:fs';
import type { DownloadItem } from 'electron';
import { WINDOW_URL } from './pages.ts';

const OURS = `blob:${WINDOW_URL}`;
const NAME = /^helmdeck-memory-[\w.-]+\.jsonl$/;

/**
 * The window's export is the one thing that leaves by a download: what our own page made, to where its owner says in a dialog of the
 * system, under a name that opens nothing. Every other download ends here.
 */
export function allowOnlyExport(event: { preventDefault(): void }, item: DownloadItem): void {
  if (!item.getURL().startsWith(OURS)) {
    event.preventDefault();
    return;
  }
  const name = item.getFilename();
  item.setSaveDialogOptions({
    title: 'Export facts',
    defaultPath: NAME.test(name) ? name : 'helmdeck-memory.jsonl',
    filters: [{ name: 'Facts, a line each', extensions: ['jsonl'] }],
  });
  item.once('done', (_done, state) => {
    // Our umask keeps others out already; a file that stood there may have let them in.
    if (state === 'completed' && process.platform !== 'win32') chmodSync(item.getSavePath(), 0o600);
  });
}
