import { Menu, type MenuItemConstructorOptions } from 'electron';
import { type TrayAction, type TrayState, trayMenu } from './tray-menu.ts';
import { toMenuItem } from './tray.ts';

/**
 * The window's menu bar: all that the tray offers, for whoever has no tray, and the keys that a system brings to every window only
 * through a menu.
 */
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
