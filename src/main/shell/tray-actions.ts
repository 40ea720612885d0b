import { app, clipboard } from 'electron';
import type { ListeningState } from '../../contract/status.ts';
import { windowCaller } from '../../listeners/window/window-result.ts';
import type { RunningProgram } from '../roots/assemble.ts';
import type { TrayAction } from './tray-menu.ts';
import type { AtLogin } from './window-calls.ts';

const MCP = '/api/v1/mcp';

interface Deps {
  readonly program: RunningProgram;
  readonly open: () => void;
  readonly atLogin: AtLogin;
  readonly chooseAtLogin: (choice: AtLogin) => void;
}

/** Runs a command from the tray's menu or the menu bar. */
export async function runTrayAction(action: TrayAction, { program, open, atLogin, chooseAtLogin }: Deps): Promise<void> {
  const { perform, listening, sidecar } = program;
  switch (action) {
    case 'open':
      open();
      break;
    case 'pause':
      await listening.pause();
      break;
    case 'resume':
      await resumeListening(program);
      break;
    case 'lock':
    case 'unlock':
      // Ignore errors, because the displayed state contains the reason.
      await perform(windowCaller('me'), action, {}).catch(() => undefined);
      break;
    case 'copy-address':
      if (listening.state.at === 'listening') void clipboard.writeText(listening.state.url + MCP);
      break;
    case 'toggle-embeddings':
      await sidecar.configure({ on: sidecar.state.at === 'off' });
      break;
    case 'toggle-login':
      chooseAtLogin({ starts: atLogin.starts !== true });
      break;
    case 'toggle-hidden':
      chooseAtLogin({ hidden: atLogin.hidden !== true });
      break;
    case 'quit':
      app.quit();
      break;
  }
}

/**
 * Resumes listening and returns the new state. Does not throw: if the port is in use, the state contains the error, and the tray
 * and window show it.
 */
export async function resumeListening({ listening }: RunningProgram): Promise<ListeningState> {
  await listening.resume().catch(() => undefined);
  return listening.state;
}
