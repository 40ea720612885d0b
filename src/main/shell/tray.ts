import { join } from 'node:path';
import { Menu, type MenuItemConstructorOptions, nativeImage, Tray } from 'electron';
import { type TrayIcon, trayIconOf, statusLine, type TrayAction, type TrayItem, trayMenu, type TrayState } from './tray-menu.ts';

interface Deps {
  /** The folder of the icons. */
  readonly icons: string;
  readonly state: TrayState;
  readonly act: (action: TrayAction) => void;
}

/** The tray icon and its menu. */
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

export function toMenuItem(item: TrayItem, act: (action: TrayAction) => void): MenuItemConstructorOptions {
  if (item === 'line') return { type: 'separator' };
  const { label, does, checked } = item;
  return {
    label,
    enabled: does !== undefined,
    ...(checked !== undefined && { type: 'checkbox', checked }),
    ...(does && { click: () => act(does) }),
  };
}
