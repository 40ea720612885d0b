import { existsSync } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';
import { readConfigFile } from '../config-file.ts';
import { type Connector, ENTRY, type EditStep, type Held, type Look, type Offer, type Step } from '../connector.ts';
import { entryOf, isOurs, withEntry } from '../json-client.ts';
import { json5 } from '../json-text.ts';
import { registered, unregistered, wantsMcporter } from './mcporter.ts';
import { installArgs, installedPlugin, PLUGIN, pluginIn } from './plugin.ts';
import { findOpenClaw, openClawCommand } from './program.ts';

const { addToList, dropFromList, dropValue, giveBack, setValue, valueAt } = json5;

const SERVER = ['mcp', 'servers', ENTRY];
const SETTINGS = ['plugins', 'entries', PLUGIN];
const UNINSTALL = ['plugins', 'uninstall', PLUGIN, '--force'];
/** When there is such a list, nothing else is loaded. */
const ALLOWED = ['plugins', 'allow'];

/** Agents store through our tools; what OpenClaw's own search finds comes through the plugin. */
export const openClaw: Connector = {
  id: 'openclaw',
  name: 'OpenClaw',
  transport: 'stdio',
  afterwards: 'A gateway that runs takes it up by itself within seconds; versions up to 2026.7 want to be started again.',
  async detect(around) {
    const { state: _, ...detected } = findOpenClaw(around);
    return detected;
  },
  async look(around): Promise<Look> {
    const { config, state } = findOpenClaw(around);
    const text = readConfigFile(config)?.text ?? '';
    const server = valueAt(text, SERVER);
    const settings = valueAt(text, SETTINGS);
    if (server === undefined && settings === undefined) return { at: 'absent' };
    // Its owner's own, with nothing of ours beside it.
    if (settings === undefined && !isOurs(server)) return { at: 'present', ...entryOf(server) };
    const why = whatLacks({ text, server, settings, plugin: installedPlugin(state) });
    return why === undefined ? { at: 'present', ...entryOf(server) } : { at: 'broken', why };
  },
  async connect(around, offer): Promise<readonly Step[]> {
    const { config, state, version } = findOpenClaw(around);
    if (!readConfigFile(config)) {
      throw new Failure('unavailable', 'OpenClaw has not been set up yet; run openclaw onboard, and try again.');
    }
    const install = openClawCommand(around, installArgs(version));
    const instead: EditStep = { does: 'edit', path: config, edit: (before = '') => withOurs(before, offer) };
    // One that is there already belongs to the connection before this.
    const back = !existsSync(pluginIn(state)) && { made: pluginIn(state), args: UNINSTALL };
    return [
      { does: 'run', ...install, touches: [config], needed: true, instead, others, ...(back && { back }) },
      ...(wantsMcporter(around) ? [registered(around, offer.entry)] : []),
    ];
  },
  async disconnect(around, held): Promise<readonly Step[]> {
    const { config, program, state } = findOpenClaw(around);
    const edit: EditStep = {
      does: 'edit',
      path: config,
      edit: (before) => (before === undefined ? undefined : withoutOurs(before, held, config)),
    };
    const installed = program !== undefined && installedPlugin(state) !== 'none';
    const uninstall = (): Step => ({
      does: 'run',
      ...openClawCommand(around, UNINSTALL),
      touches: [config],
      instead: edit,
      others,
    });
    return [installed ? uninstall() : edit, { does: 'remove', folder: pluginIn(state) }, unregistered(around, held)];
  },
};

interface Findings {
  readonly text: string;
  readonly server: unknown;
  readonly settings: unknown;
  readonly plugin: ReturnType<typeof installedPlugin>;
}

/** Of all that it takes; undefined when nothing does. */
function whatLacks({ text, server, settings, plugin }: Findings): string | undefined {
  const again = 'connect it again.';
  if (server === undefined) return `Our entry under mcp.servers is gone, so its agents cannot store; ${again}`;
  if (!isOurs(server)) return `What stands under mcp.servers.${ENTRY} is not ours, so its agents cannot store; ${again}`;
  if (plugin === 'none' || settings === undefined) return `Our plugin is gone, so its search does not find this memory; ${again}`;
  if (plugin === 'other') return `Our plugin is not the one that came with this program; ${again}`;
  const enabled = valueAt(text, ['plugins', 'enabled']) !== false && Object(settings).enabled !== false;
  const allowed = listAt(text, ALLOWED);
  const denied = listAt(text, ['plugins', 'deny']).includes(PLUGIN);
  if (enabled && !denied && (allowed.length === 0 || allowed.includes(PLUGIN))) return undefined;
  return 'Our plugin is switched off in its configuration, so its search does not find this memory; switch it on there.';
}

function listAt(text: string, path: readonly string[]): readonly unknown[] {
  const value = valueAt(text, path);
  return Array.isArray(value) ? value : [];
}

/** `memory` is not ours to change: OpenClaw refuses to start over keys that other versions of it knew there. */
function withOurs(before: string, { entry, folder, tokenFile }: Offer): string {
  const { command, args, env } = entry;
  const server = withEntry(json5, before, SERVER, { command, args, env });
  const allowed = listAt(server, ALLOWED);
  const settings = setValue(server, SETTINGS, { enabled: true, config: { folder, tokenFile } });
  return allowed.length === 0 || allowed.includes(PLUGIN) ? settings : addToList(settings, ALLOWED, PLUGIN);
}

function withoutOurs(before: string, held: Held, config: string): string {
  const text = listAt(before, ALLOWED).includes(PLUGIN) ? dropFromList(before, ALLOWED, PLUGIN) : before;
  return dropWithEmpty(withoutServer(text, held, config), SETTINGS);
}

function withoutServer(text: string, held: Held, config: string): string {
  // Where we never came, what stands under our name may be somebody else's.
  if (!held.has(config) && !isOurs(valueAt(text, SERVER))) return text;
  const theirs = held.get(config) ?? '';
  return valueAt(theirs, SERVER) === undefined ? dropWithEmpty(text, SERVER) : giveBack(text, SERVER, theirs);
}

/** What OpenClaw's program leaves alone when it installs our plugin, or removes it. */
function others(text: string): unknown {
  const { meta: _meta, plugins, ...rest } = Object(valueAt(text, [])) as Record<string, unknown>;
  const { entries, allow: _allow, installs: _installs, ...more } = Object(plugins) as Record<string, unknown>;
  const { [PLUGIN]: _ours, ...theirs } = Object(entries) as Record<string, unknown>;
  return [rest, more, theirs, listAt(text, ALLOWED).filter((one) => one !== PLUGIN)];
}

/** What is around it goes too where nothing else is in it. */
function dropWithEmpty(text: string, path: readonly string[]): string {
  if (valueAt(text, path) === undefined) return text;
  const around = path.slice(0, -1);
  const rest = dropValue(text, path);
  return around.length > 0 && Object.keys(Object(valueAt(rest, around))).length === 0 ? dropWithEmpty(rest, around) : rest;
}
