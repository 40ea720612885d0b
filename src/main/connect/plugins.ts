import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { HOOK_EVENTS } from '../../contract/names.ts';
import type { HostMachine } from '../config/config.ts';
import { cachedByFile } from './config-file.ts';
import type { Connector, EntryState } from './connector.ts';
import { valueAt } from './json-text.ts';
import { folderFromEnvironment, namesInFolder } from './places.ts';
import { tableAt } from './toml-text.ts';

/** The name of our plugin and extension, from its manifest. */
const PLUGIN_NAME = 'helmdeck-memory';

/** Returns the state of our plugin in a client, or undefined if it is not installed. */
type PluginFinder = (machine: HostMachine) => EntryState | undefined;

/**
 * Returns a connector for a client that can also get our server and hooks from a plugin. If the plugin is installed, the client
 * needs only the tokens. Then connecting removes our entry and hooks from the client's configuration instead, because with both,
 * every tool would be listed twice. `isReviewed` says whether the client runs the plugin's hooks.
 */
export function withPlugin(
  client: Connector,
  find: PluginFinder,
  isReviewed: (machine: HostMachine) => boolean = () => true,
): Connector {
  const findReadable = (machine: HostMachine): EntryState | undefined => {
    try {
      return find(machine);
    } catch (error) {
      // Settings that we cannot read must not prevent a connection that does not need them.
      if (error instanceof Failure) return undefined;
      throw error;
    }
  };
  const { hooks } = client;
  const isFromPlugin = (machine: HostMachine): boolean => findReadable(machine) !== undefined;
  return {
    ...client,
    ...(hooks && {
      hooks: {
        ...hooks,
        isFromPlugin,
        async look(machine) {
          const found = await hooks.look(machine);
          return isFromPlugin(machine) ? { ...found, waitsForReview: !isReviewed(machine) } : found;
        },
      },
    }),
    async look(machine): Promise<EntryState> {
      const look = await client.look(machine);
      return look.at === 'absent' ? (findReadable(machine) ?? look) : look;
    },
    connect: (machine, offer) => (isFromPlugin(machine) ? client.disconnect(machine, new Map()) : client.connect(machine, offer)),
  };
}

/** Returns the state of our plugin in a table that has a value for each installed plugin, by `name@marketplace`. */
function pluginIn(table: unknown, isDisabled: (value: unknown) => boolean): EntryState | undefined {
  const found = Object.entries(Object(table) as Record<string, unknown>).filter(([id]) => id.split('@')[0] === PLUGIN_NAME);
  if (found.length === 0) return undefined;
  return { at: 'bundled', ...(found.every(([, value]) => isDisabled(value)) && { disabled: true }) };
}

const claudeSettings = cachedByFile((text = '') => pluginIn(valueAt(text, ['enabledPlugins']), (value) => value === false));

/** Claude Code keeps the user's plugins in its settings. The value false means that the plugin is disabled. */
export const claudeCodePlugin: PluginFinder = (machine) =>
  claudeSettings(join(folderFromEnvironment(machine, 'CLAUDE_CONFIG_DIR') ?? join(machine.home(), '.claude'), 'settings.json'));

const codexSettings = cachedByFile((text = '') =>
  pluginIn(tableAt(text, ['plugins']), (value) => Object(value).enabled === false),
);

const codexConfig = (machine: HostMachine): string =>
  join(folderFromEnvironment(machine, 'CODEX_HOME') ?? join(machine.home(), '.codex'), 'config.toml');

export const codexPlugin: PluginFinder = (machine) => codexSettings(codexConfig(machine));

/** Codex records the review of a plugin's hooks by the id of the plugin, the file and the position of each hook. */
const codexReviews = cachedByFile((text = '') => {
  const records = Object.entries(Object(tableAt(text, ['hooks', 'state'])) as Record<string, unknown>);
  const reviewed = records.filter(
    ([key, value]) => key.startsWith(`${PLUGIN_NAME}@`) && Object(value).trusted_hash !== undefined,
  );
  return reviewed.length >= HOOK_EVENTS.length;
});

export const isCodexPluginReviewed = (machine: HostMachine): boolean => codexReviews(codexConfig(machine));

const geminiManifest = cachedByFile((text = '') => valueAt(text, ['name']));
const geminiEnablement = cachedByFile((text = '') => valueAt(text, [PLUGIN_NAME, 'overrides']));

/** Gemini CLI copies an extension into a folder. A rule that begins with `!` disables the extension below a folder. */
export const geminiExtension: PluginFinder = (machine) => {
  const folder = join(machine.home(), '.gemini', 'extensions');
  const manifests = namesInFolder(folder).map((name) => join(folder, name, 'gemini-extension.json'));
  if (!manifests.some((path) => existsSync(path) && geminiManifest(path) === PLUGIN_NAME)) return undefined;
  const rules = geminiEnablement(join(folder, 'extension-enablement.json'));
  const disabled = Array.isArray(rules) && rules.includes(`!${join(machine.home(), '*')}`);
  return { at: 'bundled', ...(disabled && { disabled }) };
};
