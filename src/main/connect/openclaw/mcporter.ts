import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { HostMachine } from '../../config/config.ts';
import { readConfigFile } from '../config-file.ts';
import { ENTRY, type EditStep, type ClientEntry, type OriginalTexts } from '../connector.ts';
import { entryOf } from '../json-client.ts';
import { restoreValue, setValue, valueAt } from '../json-text.ts';
import { startsBridge } from '../launch.ts';

/** Path of our entry in mcporter's configuration. The entry's name makes mcporter's clients call `helmdeck.query`. */
const SERVER = ['mcpServers', ENTRY];

/** True unless mcporter is disabled by our setting, or by the variable that OpenClaw's scripts use. */
export const wantsMcporter = ({ environment }: HostMachine): boolean =>
  environment['HELMDECK_OPENCLAW_QMD'] !== 'off' && environment['OPENCLAW_QMD_ENABLED'] !== 'false';

/** Returns the path of the first existing configuration file that mcporter would read, or the path of its default file. */
function mcporterConfig(machine: HostMachine): string {
  const { MCPORTER_CONFIG = '', XDG_CONFIG_HOME = '' } = machine.environment;
  if (isAbsolute(MCPORTER_CONFIG)) return MCPORTER_CONFIG;
  const own = join(machine.home(), '.mcporter');
  const folders = [...(isAbsolute(XDG_CONFIG_HOME) ? [join(XDG_CONFIG_HOME, 'mcporter')] : []), own];
  const files = folders.flatMap((folder) => [join(folder, 'mcporter.json'), join(folder, 'mcporter.jsonc')]);
  return files.find(existsSync) ?? join(own, 'mcporter.json');
}

/**
 * Returns an entry that starts a search-only server. The entry contains neither the memory's address nor a token, so that it
 * stays valid if either changes.
 */
export const mcporterEntry = ({ command, args, env }: ClientEntry): ClientEntry => ({ command, args: [...args, '--qmd'], env });

/** Reports whether mcporter's configuration contains our entry (`ours`), another entry with our name (`other`), or neither. */
export function lookAtMcporter(machine: HostMachine, entry: ClientEntry): { path: string; at: 'ours' | 'other' | 'absent' } {
  const path = mcporterConfig(machine);
  const text = readConfigFile(path)?.text;
  const value = text === undefined ? undefined : valueAt(text, SERVER);
  if (value === undefined) return { path, at: 'absent' };
  return { path, at: isDeepStrictEqual(value, mcporterEntry(entry)) ? 'ours' : 'other' };
}

export const registerInMcporter = (machine: HostMachine, entry: ClientEntry): EditStep => ({
  does: 'edit',
  path: mcporterConfig(machine),
  edit: (before = '') => setValue(before, SERVER, mcporterEntry(entry)),
});

export function unregisterFromMcporter(machine: HostMachine, originals: OriginalTexts): EditStep {
  const path = mcporterConfig(machine);
  const edit = (before?: string): string | undefined => {
    if (before === undefined) return undefined;
    // If we never changed this file, remove only an entry that starts our bridge: other programs can use our entry's name.
    return originals.has(path) || isOurs(before) ? restoreValue(before, SERVER, originals.get(path)) : before;
  };
  return { does: 'edit', path, edit };
}

function isOurs(text: string): boolean {
  const { entry } = entryOf(valueAt(text, SERVER));
  return entry !== undefined && startsBridge(entry) && entry.args.includes('--qmd');
}
