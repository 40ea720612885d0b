import { type FileState, isKeyAvailable, type KeyState, type ListeningState, type SidecarState } from '../../contract/status.ts';
import type { Shortcut } from './shortcut.ts';

export interface TrayState {
  readonly listening: ListeningState;
  readonly key: KeyState;
  readonly file: FileState;
  readonly embeddings: SidecarState;
  /** True if the program starts at login. Undefined if this system does not support starting at login. */
  readonly startsAtLogin: boolean | undefined;
  readonly startsHidden: boolean;
  /** The global shortcut that opens the window. Undefined if no shortcut is configured. */
  readonly shortcut: Shortcut | undefined;
  /** Names of connected agents whose configuration no longer contains our entry. */
  readonly wiped: readonly string[];
}

export type TrayIcon = 'on' | 'paused' | 'locked' | 'needs-you';

export type TrayAction =
  | 'open'
  | 'pause'
  | 'resume'
  | 'lock'
  | 'unlock'
  | 'copy-address'
  | 'toggle-embeddings'
  | 'toggle-login'
  | 'toggle-hidden'
  | 'quit';

export type TrayItem = { readonly label: string; readonly does?: TrayAction; readonly checked?: boolean } | 'line';

/** Returns the icon for the most serious problem or state. */
export function trayIconOf({ listening, key, file, wiped }: TrayState): TrayIcon {
  if (key.at === 'locked') return 'locked';
  if (file.at === 'failed' || listening.at === 'failed' || key.at !== 'ok' || wiped.length > 0) return 'needs-you';
  return listening.at === 'paused' ? 'paused' : 'on';
}

/** Returns the menu: the status, the most important commands, and the settings for starting at login. */
export function trayMenu(state: TrayState): readonly TrayItem[] {
  const { listening, key, startsAtLogin, startsHidden, shortcut } = state;
  return [
    { label: statusLine(state) },
    'line',
    { label: 'Open Memory', does: 'open' },
    ...(shortcut ? [{ label: shortcutLine(shortcut) }] : []),
    ...(listening.at === 'listening' ? [{ label: 'Copy MCP Address', does: 'copy-address' } as const] : []),
    'line',
    agentAccessItem(listening),
    ...(key.at === 'ok' ? [{ label: 'Lock', does: 'lock' } as const] : []),
    ...(key.at === 'locked' ? [{ label: 'Unlock', does: 'unlock' } as const] : []),
    { label: embeddingsLine(state.embeddings), does: 'toggle-embeddings', checked: state.embeddings.at !== 'off' },
    'line',
    ...(startsAtLogin === undefined ? [] : loginItems(startsAtLogin, startsHidden)),
    { label: 'Quit Helmdeck Memory', does: 'quit' },
  ];
}

const shortcutLine = ({ keys, works }: Shortcut): string => (works ? `Shortcut: ${keys}` : `Shortcut ${keys} Is Not Available`);

/** Returns a label without details. The window shows the details of a failure. */
function embeddingsLine(embeddings: SidecarState): string {
  switch (embeddings.at) {
    case 'off':
    case 'ready':
      return 'Embeddings';
    case 'starting':
    case 'asleep':
      return 'Embeddings (starting)';
    case 'pulling':
      return `Embeddings (downloading the model${embeddings.of === 0 ? '' : `, ${Math.floor((100 * embeddings.done) / embeddings.of)} %`})`;
    case 'unapproved':
    case 'no_model':
      return 'Embeddings (open the window to continue)';
    case 'failed':
      return 'Embeddings (failed, open the window for details)';
  }
}

function agentAccessItem(listening: ListeningState): TrayItem {
  switch (listening.at) {
    case 'listening':
      return { label: 'Pause Agents', does: 'pause' };
    case 'paused':
      return { label: 'Resume Agents', does: 'resume' };
    case 'failed':
      return { label: 'Try Again', does: 'resume' };
  }
}

const loginItems = (starts: boolean, hidden: boolean): readonly TrayItem[] => [
  { label: 'Start at Login', does: 'toggle-login', checked: starts },
  { label: 'Start in the Tray at Login', does: 'toggle-hidden', checked: hidden },
  'line',
];

export function statusLine({ listening, key, file, wiped }: TrayState): string {
  if (file.at === 'failed') return `The memory cannot be used: ${file.why}`;
  if (key.at === 'locked') return 'Locked. Agents cannot read or write this memory.';
  if (!isKeyAvailable(key)) return `The key is not available (${key.at}). Open the window to see what to do.`;
  if (listening.at === 'failed') return `Agents can't connect: ${listening.why}`;
  if (listening.at === 'paused') return `Paused. Agents cannot use this memory.${wipedLine(wiped)}`;
  const unsaved = key.at === 'ephemeral' ? ' Facts are lost when Helmdeck Memory quits.' : '';
  return `Listening on ${new URL(listening.url).host}.${unsaved}${wipedLine(wiped)}`;
}

function wipedLine([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const agents = others.length === 0 ? `${first} is` : `${others.length + 1} agents are`;
  return ` ${agents} no longer connected. Open the window to reconnect.`;
}
