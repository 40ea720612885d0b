import { join } from 'node:path';
import { Menu, type MenuItemConstructorOptions, nativeImage, Tray } from 'electron';
import { type TrayIcon, trayIconOf, statusLine, type TrayAction, type TrayItem, trayMenu, type TrayState } from './tray-menu.ts';

interface Deps {
  readonly icons: string;
  readonly state: TrayState;
  readonly act: (action: TrayAction) => void;
}

export class MemoryTray implements Disposable {
  readonly #tray: Tray;
  readonly #icons: string;
  readonly #act: (action: TrayAction) => void;

  constructor({ icons, state, act }: Deps) {
    this.#icons = icons;
    this.#act = act;
    this.#tray = new Tray(this.#icon(trayIconOf(state)));
    this.#tray.on('click', () => act('open'));
    this.show(state);
  }

  show(state: TrayState): void {
    this.#tray.setImage(this.#icon(trayIconOf(state)));
    this.#tray.setToolTip(`Helmdeck Memory: ${statusLine(state)}`);
    this.#tray.setContextMenu(Menu.buildFromTemplate(trayMenu(state).map((item) => toMenuItem(item, this.#act))));
  }

  [Symbol.dispose](): void {
    this.#tray.destroy();
  }

  #icon(icon: TrayIcon) {
    const suffix = process.platform === 'darwin' ? 'Template' : '';
    const image = nativeImage.createFromPath(join(this.#icons, `tray-${icon}${suffix}.png`));
    image.setTemplateImage(process.platform === 'darwin');
    return image;
  }
}

function toMenuItem(item: TrayItem, act: (action: TrayAction) => void): MenuItemConstructorOptions {
  if (item === 'line') return { type: 'separator' };
  const { label, does, checked } = item;
  return {
    label,
    enabled: does !== undefined,
    ...(checked !== undefined && { type: 'checkbox', checked }),
    ...(does && { click: () => act(does) }),
  };
}

/** Sets the menu bar. It has the tray's commands, for desktops without a tray, and provides the standard keyboard shortcuts. */
export function setApplicationMenu(state: TrayState, act: (action: TrayAction) => void): void {
  const own = trayMenu(state).map((item): MenuItemConstructorOptions => {
    const template = toMenuItem(item, act);
    return item !== 'line' && item.does === 'quit' ? { ...template, accelerator: 'CmdOrCtrl+Q' } : template;
  });
  Menu.setApplicationMenu(
    Menu.buildFromTemplate([
      { label: 'Memory', submenu: own },
      { role: 'editMenu' },
      { label: 'View', submenu: [{ role: 'resetZoom' }, { role: 'zoomIn' }, { role: 'zoomOut' }, { role: 'togglefullscreen' }] },
      { role: 'windowMenu' },
      { role: 'help', submenu: [{ role: 'about' }] },
    ]),
  );
}
