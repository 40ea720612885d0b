import { type FileState, isKeyAvailable, type KeyState, type ListeningState, type SidecarState } from '../../contract/status.ts';
import type { Shortcut } from './shortcut.ts';

/** All that the tray tells and offers, from what is true at the moment. */
export interface TrayState {
  readonly listening: ListeningState;
  readonly key: KeyState;
  readonly file: FileState;
  readonly embeddings: SidecarState;
  /** Starts with the session of its owner; undefined where the system knows no such thing. */
  readonly startsAtLogin: boolean | undefined;
  readonly startsHidden: boolean;
  /** Undefined while none is set. */
  readonly shortcut: Shortcut | undefined;
  /** Agents that were connected and lost their entry, by name. */
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

/** What its owner can see from the corner of an eye. */
export function trayIconOf({ listening, key, file, wiped }: TrayState): TrayIcon {
  if (key.at === 'locked') return 'locked';
  if (file.at === 'failed' || listening.at === 'failed' || key.at !== 'ok' || wiped.length > 0) return 'needs-you';
  return listening.at === 'paused' ? 'paused' : 'on';
}

/** Whether it is on, where, and what else there is to do; the rest is in the window. */
export function trayMenu(state: TrayState): readonly TrayItem[] {
  const { listening, key, startsAtLogin, startsHidden, shortcut } = state;
  return [
    { label: statusLine(state) },
    'line',
    { label: 'Open Memory', does: 'open' },
    ...(shortcut ? [{ label: shortcutLine(shortcut) }] : []),
    ...(listening.at === 'listening' ? [{ label: 'Copy MCP Address', does: 'copy-address' } as const] : []),
    'line',
    letIn(listening),
    ...(key.at === 'ok' ? [{ label: 'Lock', does: 'lock' } as const] : []),
    ...(key.at === 'locked' ? [{ label: 'Unlock', does: 'unlock' } as const] : []),
    { label: embeddingsLine(state.embeddings), does: 'toggle-embeddings', checked: state.embeddings.at !== 'off' },
    'line',
    ...(startsAtLogin === undefined ? [] : atLogin(startsAtLogin, startsHidden)),
    { label: 'Quit Helmdeck Memory', does: 'quit' },
  ];
}

const shortcutLine = ({ keys, works }: Shortcut): string =>
  works ? `${keys} Opens It from Anywhere` : `${keys} Opens Nothing: Taken, or Not Given by This Desktop`;

/** One line: what it takes to mend it stands in the window. */
function embeddingsLine(embeddings: SidecarState): string {
  switch (embeddings.at) {
    case 'off':
    case 'ready':
      return 'Embeddings';
    case 'starting':
    case 'asleep':
      return 'Embeddings (starting)';
    case 'pulling':
      return `Embeddings (fetching the model${embeddings.of === 0 ? '' : `, ${Math.floor((100 * embeddings.done) / embeddings.of)} %`})`;
    case 'unapproved':
    case 'no_model':
      return 'Embeddings (open Memory to go on)';
    case 'failed':
      return 'Embeddings (not available, open Memory)';
  }
}

function letIn(listening: ListeningState): TrayItem {
  switch (listening.at) {
    case 'listening':
      return { label: 'Pause Agents', does: 'pause' };
    case 'paused':
      return { label: 'Let Agents In', does: 'resume' };
    case 'failed':
      return { label: 'Try Again', does: 'resume' };
  }
}

const atLogin = (starts: boolean, hidden: boolean): readonly TrayItem[] => [
  { label: 'Start at Login', does: 'toggle-login', checked: starts },
  { label: 'Stay in the Tray When Started at Login', does: 'toggle-hidden', checked: hidden },
  'line',
];

export function statusLine({ listening, key, file, wiped }: TrayState): string {
  if (file.at === 'failed') return `The memory file cannot be used: ${file.why}`;
  if (key.at === 'locked') return 'Locked. Agents read and write nothing.';
  if (!isKeyAvailable(key)) return `The key is ${key.at}. Open Memory to see what to do.`;
  if (listening.at === 'failed') return `Agents cannot come: ${listening.why}`;
  if (listening.at === 'paused') return `Paused. Agents cannot reach this memory.${wipedLine(wiped)}`;
  const kept = key.at === 'ephemeral' ? ' Nothing is kept.' : '';
  return `Listening on ${new URL(listening.url).host}.${kept}${wipedLine(wiped)}`;
}

function wipedLine([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const who = others.length === 0 ? `${first} has` : `${others.length + 1} agents have`;
  return ` ${who} lost the entry for this memory. Open Memory to repair it.`;
}
