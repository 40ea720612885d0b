import { Menu, type MenuItemConstructorOptions } from 'electron';
import { type TrayAction, type TrayState, trayMenu } from './tray-menu.ts';
import { toMenuItem } from './tray.ts';

/** Sets the menu bar. It repeats the tray's commands for desktops without a tray, and provides the standard keyboard shortcuts. */
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
