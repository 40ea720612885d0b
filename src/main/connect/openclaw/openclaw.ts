import { existsSync } from 'node:fs';
import { Failure } from '../../../contract/failure.ts';
import { HOOK_EVENTS } from '../../../contract/names.ts';
import { readConfigFile } from '../config-file.ts';
import {
  type Connector,
  ENTRY,
  type EditStep,
  type OriginalTexts,
  type EntryState,
  type InstalledHooks,
  type Offer,
  type Step,
} from '../connector.ts';
import { entryOf, isOurs, withEntry } from '../json-client.ts';
import { json5 } from '../json-text.ts';
import { registerInMcporter, unregisterFromMcporter, wantsMcporter } from './mcporter.ts';
import { installArgs, installedPlugin, PLUGIN, pluginIn } from './plugin.ts';
import { findOpenClaw, openClawCommand } from './program.ts';

const { addToList, dropFromList, dropValue, restoreValue, setValue, valueAt } = json5;

const SERVER = ['mcp', 'servers', ENTRY];
const SETTINGS = ['plugins', 'entries', PLUGIN];
const UNINSTALL = ['plugins', 'uninstall', PLUGIN, '--force'];
/** Path of a list of plugin names. If the list exists, OpenClaw loads only the plugins in the list. */
const ALLOWED = ['plugins', 'allow'];

const NOT_ALLOWED = 'OpenClaw does not let the plugin of Helmdeck Memory add facts to a message. Connect OpenClaw again.';
/** Milliseconds that OpenClaw waits for the plugin before each message. The plugin itself ends far earlier. */
const TURN_TIMEOUT_MS = 2000;

/** Connects OpenClaw: its agents use our MCP tools, and its own memory search uses our plugin. */
export const openClaw: Connector = {
  id: 'openclaw',
  name: 'OpenClaw',
  transport: 'stdio',
  afterwards:
    'A running OpenClaw gateway loads the connection within seconds. OpenClaw 2026.7 and older versions must be restarted.',
  hooks: {
    // The plugin itself asks at each turn, so there are no commands.
    isFromPlugin: () => true,
    async look(machine): Promise<InstalledHooks> {
      const { config } = findOpenClaw(machine);
      const { hooks } = Object(valueAt(readConfigFile(config)?.text ?? '', SETTINGS)) as { hooks?: unknown };
      const { allowConversationAccess, allowPromptInjection } = Object(hooks) as Record<string, unknown>;
      const isAllowed = allowConversationAccess === true && allowPromptInjection !== false;
      return { commands: [], ...(!isAllowed && { why: NOT_ALLOWED }) };
    },
  },
  async detect(machine) {
    const { state: _, ...detected } = findOpenClaw(machine);
    return detected;
  },
  async look(machine): Promise<EntryState> {
    const { config, state } = findOpenClaw(machine);
    const text = readConfigFile(config)?.text ?? '';
    const server = valueAt(text, SERVER);
    const settings = valueAt(text, SETTINGS);
    if (server === undefined && settings === undefined) return { at: 'absent' };
    // The entry belongs to another program, and our plugin is not installed.
    if (settings === undefined && !isOurs(server)) return { at: 'present', ...entryOf(server) };
    const why = whatIsMissing({ text, server, settings, plugin: installedPlugin(state) });
    return why === undefined ? { at: 'present', ...entryOf(server) } : { at: 'broken', why };
  },
  async connect(machine, offer): Promise<readonly Step[]> {
    const { config, state, version } = findOpenClaw(machine);
    if (!readConfigFile(config)) {
      throw new Failure('unavailable', 'OpenClaw is not set up yet. Run `openclaw onboard` and try again.');
    }
    const install = openClawCommand(machine, installArgs(version));
    const instead: EditStep = { does: 'edit', path: config, edit: (before = '') => withOurs(before, offer) };
    // Keep an existing plugin folder when rolling back, because it belongs to an earlier connection.
    const back = !existsSync(pluginIn(state)) && { made: pluginIn(state), args: UNINSTALL };
    return [
      { does: 'run', ...install, touches: [config], needed: true, instead, others, ...(back && { back }) },
      ...(wantsMcporter(machine) ? [registerInMcporter(machine, offer.entry)] : []),
    ];
  },
  async disconnect(machine, originals): Promise<readonly Step[]> {
    const { config, program, state } = findOpenClaw(machine);
    const edit: EditStep = {
      does: 'edit',
      path: config,
      edit: (before) => (before === undefined ? undefined : withoutOurs(before, originals, config)),
    };
    const installed = program !== undefined && installedPlugin(state) !== 'none';
    const uninstall = (): Step => ({
      does: 'run',
      ...openClawCommand(machine, UNINSTALL),
      touches: [config],
      instead: edit,
      others,
    });
    return [
      installed ? uninstall() : edit,
      { does: 'remove', folder: pluginIn(state) },
      unregisterFromMcporter(machine, originals),
    ];
  },
};

interface Findings {
  readonly text: string;
  readonly server: unknown;
  readonly settings: unknown;
  readonly plugin: ReturnType<typeof installedPlugin>;
}

/** Returns a message about the first missing part of the connection, or undefined if the connection is complete. */
function whatIsMissing({ text, server, settings, plugin }: Findings): string | undefined {
  const again = 'Connect OpenClaw again.';
  if (server === undefined)
    return `The entry mcp.servers.${ENTRY} is missing, so OpenClaw's agents cannot use the memory. ${again}`;
  if (!isOurs(server))
    return `The entry mcp.servers.${ENTRY} belongs to another program, so OpenClaw's agents cannot use the memory. ${again}`;
  if (plugin === 'none' || settings === undefined)
    return `The plugin of Helmdeck Memory is missing, so OpenClaw's search does not search this memory. ${again}`;
  if (plugin === 'other') return `The installed plugin is from another version of Helmdeck Memory. ${again}`;
  const enabled = valueAt(text, ['plugins', 'enabled']) !== false && Object(settings).enabled !== false;
  const allowed = listAt(text, ALLOWED);
  const denied = listAt(text, ['plugins', 'deny']).includes(PLUGIN);
  if (enabled && !denied && (allowed.length === 0 || allowed.includes(PLUGIN))) return undefined;
  return "The plugin of Helmdeck Memory is disabled in OpenClaw's configuration, so OpenClaw's search does not search this memory. Enable the plugin there.";
}

function listAt(text: string, path: readonly string[]): readonly unknown[] {
  const value = valueAt(text, path);
  return Array.isArray(value) ? value : [];
}

/**
 * Adds our entry and our plugin's settings. Does not change the key `memory`, because OpenClaw does not start if `memory`
 * contains keys of other OpenClaw versions.
 */
function withOurs(before: string, { entry, folder, tokenFile, hooks: { commands } }: Offer): string {
  const { command, args, env } = entry;
  const server = withEntry(json5, before, SERVER, { command, args, env });
  const allowed = listAt(server, ALLOWED);
  const events = HOOK_EVENTS.filter((event) => commands[event] !== undefined);
  // OpenClaw runs a plugin's code before a message only with this permission.
  const hooks = { allowConversationAccess: true, timeouts: { before_prompt_build: TURN_TIMEOUT_MS } };
  const settings = setValue(server, SETTINGS, {
    enabled: true,
    ...(events.length > 0 && { hooks }),
    config: { folder, tokenFile, ...(events.length > 0 && events.length < HOOK_EVENTS.length && { events }) },
  });
  return allowed.length === 0 || allowed.includes(PLUGIN) ? settings : addToList(settings, ALLOWED, PLUGIN);
}

function withoutOurs(before: string, originals: OriginalTexts, config: string): string {
  const text = listAt(before, ALLOWED).includes(PLUGIN) ? dropFromList(before, ALLOWED, PLUGIN) : before;
  return dropWithEmpty(withoutServer(text, originals, config), SETTINGS);
}

function withoutServer(text: string, originals: OriginalTexts, config: string): string {
  // If we never changed this file, remove only an entry that starts our bridge: other programs can use our entry's name.
  if (!originals.has(config) && !isOurs(valueAt(text, SERVER))) return text;
  const original = originals.get(config) ?? '';
  return valueAt(original, SERVER) === undefined ? dropWithEmpty(text, SERVER) : restoreValue(text, SERVER, original);
}

/** Returns the settings that OpenClaw does not change when it installs or removes our plugin. */
function others(text: string): unknown {
  const { meta: _meta, plugins, ...rest } = Object(valueAt(text, [])) as Record<string, unknown>;
  const { entries, allow: _allow, installs: _installs, ...more } = Object(plugins) as Record<string, unknown>;
  const { [PLUGIN]: _ours, ...otherPlugins } = Object(entries) as Record<string, unknown>;
  return [rest, more, otherPlugins, listAt(text, ALLOWED).filter((one) => one !== PLUGIN)];
}

/** Removes the value at a path, and every parent object that becomes empty. */
function dropWithEmpty(text: string, path: readonly string[]): string {
  if (valueAt(text, path) === undefined) return text;
  const parent = path.slice(0, -1);
  const rest = dropValue(text, path);
  return parent.length > 0 && Object.keys(Object(valueAt(rest, parent))).length === 0 ? dropWithEmpty(rest, parent) : rest;
}
