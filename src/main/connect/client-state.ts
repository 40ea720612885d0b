import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ClientRow, HookEvent } from '../../contract/client.ts';
import { HOOK_EVENTS } from '../../contract/names.ts';
import type { TokenList } from '../../contract/token.ts';
import type { ClientEntry, EntryState, HookCommands, InstalledHooks } from './connector.ts';
import { startsBridgeFor } from './launch.ts';
import type { Record } from './records.ts';

export type TokenRow = TokenList['tokens'][number];

/** Returns the state of a client's connection, and the reason if it cannot work. */
export function stateOf(
  look: EntryState,
  installed: boolean,
  { client, record, token }: { client: string; record: Record | undefined; token: boolean },
): { state: ClientRow['state']; why?: string } {
  if (look.at === 'broken') return { state: 'broken', why: look.why };
  if (look.at === 'absent') return { state: record ? 'wiped' : installed ? 'not_connected' : 'not_installed' };
  if (look.at === 'bundled' && !record) return { state: 'not_connected' };
  const entry = look.at === 'present' ? look.entry : undefined;
  const ours = record ? !entry || matches(entry, record.entry) : entry && startsBridgeFor(entry, client);
  if (!ours) return { state: 'differs' };
  if (look.disabled)
    return { state: 'broken', why: "The entry for Helmdeck Memory is disabled in the client's configuration. Enable it there." };
  const needsToken = entry !== undefined || look.at === 'bundled';
  if (needsToken && !token)
    return { state: 'broken', why: "The client's token file is missing from the data folder. Connect the client again." };
  const missing = entry && missingFileOf(entry);
  return missing === undefined
    ? { state: 'connected' }
    : { state: 'broken', why: `${missing} is missing, so the bridge cannot start. Connect the client again.` };
}

/** True if the entry in the configuration equals the recorded entry. Ignores environment variables that the user added. */
const matches = ({ env, ...entry }: ClientEntry, { env: own, ...ours }: ClientEntry): boolean =>
  isDeepStrictEqual(entry, ours) && Object.entries(own).every(([name, value]) => env[name] === value);

/** Returns the state of a client's hooks. `wanted` are the commands that were written when the client was connected. */
export function hookStateOf(found: InstalledHooks, wanted: HookCommands, name: string): NonNullable<ClientRow['hooks']> {
  // A plugin's hooks are not in the configuration.
  const isFromPlugin = (event: HookEvent): boolean => wanted[event] === '';
  const events = HOOK_EVENTS.filter((event) => isFromPlugin(event) || found.commands.some((hook) => hook.event === event));
  const isAsWanted =
    found.commands.length === Object.values(wanted).filter((command) => command !== '').length &&
    found.commands.every(({ event, command }) => wanted[event] === command);
  if (!isAsWanted) {
    return { events, state: 'differs', why: `The hooks in the configuration of ${name} were changed. Connect ${name} again.` };
  }
  if (events.length === 0) return { events, state: 'off' };
  if (found.why !== undefined) return { events, state: 'differs', why: found.why };
  return { events, state: found.waitsForReview ? 'waits_for_review' : 'on' };
}

const missingFileOf = ({ command, args: [bridge] }: ClientEntry): string | undefined =>
  [command, bridge].find((path) => path !== undefined && isAbsolute(path) && !existsSync(path));

export const tokenOf = ({ id, paused, expires_at, last_used_at, quarantined }: TokenRow): NonNullable<ClientRow['token']> => ({
  id,
  paused: paused ?? false,
  expires_at,
  ...(last_used_at !== undefined && { last_used_at }),
  ...(quarantined && { quarantined }),
});
