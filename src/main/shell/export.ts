import { chmodSync } from 'node:fs';
import type { DownloadItem } from 'electron';
import { WINDOW_URL } from './pages.ts';

const OURS = `blob:${WINDOW_URL}`;
const NAME = /^helmdeck-memory-[\w.-]+\.jsonl$/;

/** Allows only the download of the window's export. The owner chooses the file in a system dialog. Cancels all other downloads. */
export function allowOnlyExport(event: { preventDefault(): void }, item: DownloadItem): void {
  if (!item.getURL().startsWith(OURS)) {
    event.preventDefault();
    return;
  }
  const name = item.getFilename();
  item.setSaveDialogOptions({
    title: 'Export facts',
    defaultPath: NAME.test(name) ? name : 'helmdeck-memory.jsonl',
    filters: [{ name: 'Facts, one per line', extensions: ['jsonl'] }],
  });
  item.once('done', (_done, state) => {
    // An existing file may be readable by other users. For a new file the umask prevents that.
    if (state === 'completed' && process.platform !== 'win32') chmodSync(item.getSavePath(), 0o600);
  });
}
