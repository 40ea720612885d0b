import { EventEmitter } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { restrictWebContents } from '../../../src/main/shell/guard.ts';
import { webPreferences } from '../../../src/main/shell/web-preferences.ts';
import { app, type FakeContents, fakeContents } from '../../support/electron.ts';
import { tempFolder } from '../../support/temp-folder.ts';

vi.mock('electron', () => import('../../support/electron.ts'));

const URLS = [
  'https://example.com/',
  'http://127.0.0.1:7345/',
  'file:///etc/passwd',
  'helmdeck-window://window/',
  'helmdeck-window://other/',
  'javascript:alert(1)',
  'data:text/html,x',
  'blob:helmdeck-window://window/0',
  'about:blank',
  'mailto:a@example.com',
  'vbscript:x',
  'chrome://settings',
  'devtools://devtools/',
  'ms-settings:',
  'smb://host/share',
];

function fenced(): FakeContents {
  app.removeAllListeners();
  restrictWebContents();
  const contents = fakeContents('helmdeck-window://window/');
  app.emit('web-contents-created', {}, contents.contents);
  return contents;
}

const OUR_BLOB = 'blob:helmdeck-window://window/0';

/** A download as Electron passes it to the handler, and the options of its save dialog. */
function download(url: string, name: string, preventDefault: () => void = () => undefined) {
  const asked: object[] = [];
  const item = Object.assign(new EventEmitter(), {
    path: '',
    getURL: () => url,
    getFilename: () => name,
    getSavePath: () => item.path,
    setSaveDialogOptions: (options: object) => void asked.push(options),
  });
  fenced().contents.session.emit('will-download', { preventDefault }, item);
  return { asked, item };
}

describe('a page (R-DESK-10)', () => {
  test.each(['will-navigate', 'will-redirect', 'will-frame-navigate', 'will-attach-webview'])('cannot cause %s', (event) => {
    const contents = fenced();
    for (const url of URLS) {
      const preventDefault = vi.fn<() => void>();
      contents.emit(event, { preventDefault, url }, url);
      expect(preventDefault).toHaveBeenCalledOnce();
    }
  });

  test('cannot open a window', () => {
    const { set } = fenced();
    for (const url of URLS) expect(set['setWindowOpenHandler']?.({ url } as never)).toEqual({ action: 'deny' });
  });

  test.each([...URLS, 'blob:https://example.com/0', 'blob:helmdeck-window://other/0'])(
    'can download only blobs of our page: %s',
    (url) => {
      const preventDefault = vi.fn<() => void>();
      const { asked } = download(url, 'x', preventDefault);
      const ours = url === OUR_BLOB;
      expect(preventDefault).toHaveBeenCalledTimes(ours ? 0 : 1);
      expect(asked).toHaveLength(ours ? 1 : 0);
    },
  );

  test.each([
    ['helmdeck-memory-me.jsonl', 'helmdeck-memory-me.jsonl'],
    ['../../.bashrc', 'helmdeck-memory.jsonl'],
    ['helmdeck-memory-me.jsonl.desktop', 'helmdeck-memory.jsonl'],
  ])('can export a file named %s as %s, readable by its owner only', (called, offered) => {
    const path = join(tempFolder(), 'kept.jsonl');
    writeFileSync(path, '', { mode: 0o644 });
    const { asked, item } = download(OUR_BLOB, called);
    expect(asked).toMatchObject([{ defaultPath: offered, filters: [{ extensions: ['jsonl'] }] }]);
    item.path = path;
    item.emit('done', {}, 'completed');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('can cancel an export', () => {
    const { item } = download(OUR_BLOB, 'x');
    expect(() => item.emit('done', {}, 'cancelled')).not.toThrow();
  });

  test('gets no permission except to write to the clipboard', () => {
    const { set } = fenced();
    const permissions = [
      'media',
      'geolocation',
      'notifications',
      'fullscreen',
      'openExternal',
      'clipboard-read',
      'hid',
      'usb',
      'fileSystem',
    ];
    for (const permission of [...permissions, 'clipboard-sanitized-write']) {
      const may = permission === 'clipboard-sanitized-write';
      const answer = vi.fn<(may: boolean) => void>();
      set['setPermissionRequestHandler']?.({} as never, permission as never, answer as never);
      expect(answer).toHaveBeenCalledExactlyOnceWith(may);
      expect(set['setPermissionCheckHandler']?.({} as never, permission as never)).toBe(may);
    }
    expect(set['setDevicePermissionHandler']?.({} as never)).toBe(false);
  });

  test('cannot make network requests', () => {
    const { set } = fenced();
    for (const url of URLS) {
      const answer = vi.fn<(what: { cancel: boolean }) => void>();
      set['onBeforeRequest']?.({ url } as never, answer as never);
      expect(answer).toHaveBeenCalledExactlyOnceWith({ cancel: !/^(helmdeck-window|devtools):/.test(url) });
    }
  });
});

test('the page runs in a sandbox with context isolation and without Node (R-DESK-10)', () => {
  expect(webPreferences({ preload: '/preload.cjs', devTools: false })).toEqual({
    preload: '/preload.cjs',
    devTools: false,
    sandbox: true,
    contextIsolation: true,
    webSecurity: true,
    nodeIntegration: false,
    nodeIntegrationInWorker: false,
    nodeIntegrationInSubFrames: false,
    allowRunningInsecureContent: false,
    webviewTag: false,
    navigateOnDragDrop: false,
    spellcheck: false,
  });
});
