import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { HostMachine } from '../../config/config.ts';
import { readConfigFile } from '../config-file.ts';
import { ENTRY, type EditStep, type Entry, type OriginalTexts } from '../connector.ts';
import { entryOf } from '../json-client.ts';
import { restoreValue, setValue, valueAt } from '../json-text.ts';
import { startsBridge } from '../launch.ts';

/** Under this name its clients call `helmdeck.query`. */
const SERVER = ['mcpServers', ENTRY];

/** Our setting, and the variable that scripts for OpenClaw set for the same. Either one keeps us out. */
export const wantsMcporter = ({ environment }: HostMachine): boolean =>
  environment['HELMDECK_OPENCLAW_QMD'] !== 'off' && environment['OPENCLAW_QMD_ENABLED'] !== 'false';

/** The first that mcporter reads, or the one that it reads wherever it is started. */
function mcporterConfig(machine: HostMachine): string {
  const { MCPORTER_CONFIG = '', XDG_CONFIG_HOME = '' } = machine.environment;
  if (isAbsolute(MCPORTER_CONFIG)) return MCPORTER_CONFIG;
  const own = join(machine.home(), '.mcporter');
  const folders = [...(isAbsolute(XDG_CONFIG_HOME) ? [join(XDG_CONFIG_HOME, 'mcporter')] : []), own];
  const files = folders.flatMap((folder) => [join(folder, 'mcporter.json'), join(folder, 'mcporter.jsonc')]);
  return files.find(existsSync) ?? join(own, 'mcporter.json');
}

/** The server that only searches. It stands there without address and token, so a new one of either is no reason to come again. */
export const mcporterEntry = ({ command, args, env }: Entry): Entry => ({ command, args: [...args, '--qmd'], env });

/** How it stands there: ours, another's, or not at all. */
export function lookAtMcporter(machine: HostMachine, entry: Entry): { path: string; at: 'ours' | 'other' | 'absent' } {
  const path = mcporterConfig(machine);
  const text = readConfigFile(path)?.text;
  const value = text === undefined ? undefined : valueAt(text, SERVER);
  if (value === undefined) return { path, at: 'absent' };
  return { path, at: isDeepStrictEqual(value, mcporterEntry(entry)) ? 'ours' : 'other' };
}

export const registered = (machine: HostMachine, entry: Entry): EditStep => ({
  does: 'edit',
  path: mcporterConfig(machine),
  edit: (before = '') => setValue(before, SERVER, mcporterEntry(entry)),
});

export function unregistered(machine: HostMachine, held: OriginalTexts): EditStep {
  const path = mcporterConfig(machine);
  const edit = (before?: string): string | undefined => {
    if (before === undefined) return undefined;
    // Where we were told not to come, what stands under our name is somebody else's.
    return held.has(path) || isOurs(before) ? restoreValue(before, SERVER, held.get(path)) : before;
  };
  return { does: 'edit', path, edit };
}

function isOurs(text: string): boolean {
  const { entry } = entryOf(valueAt(text, SERVER));
  return entry !== undefined && startsBridge(entry) && entry.args.includes('--qmd');
}
