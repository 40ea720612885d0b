import { HOOK_EVENTS } from '../../contract/names.ts';
import { addPath } from './changes.ts';
import { cachedByFile, readConfigFile } from './config-file.ts';
import {
  type ClientEntry,
  type Connector,
  type DetectedClient,
  type EditStep,
  ENTRY,
  type EntryState,
  type HookSupport,
  type LocalMachine,
} from './connector.ts';
import { commandsOf, type HookFormat, hooksIn, withHooks, withoutHooks } from './hook-text.ts';
import { restoreValue, type json5, setValue, valueAt } from './json-text.ts';
import { HOOK_FILE, startsBridge } from './launch.ts';

interface JsonHooks extends HookFormat, Pick<HookSupport, 'windowsShell'> {
  /** Returns the path of the client's settings, if they are not in the file with the MCP servers. */
  readonly file?: (machine: LocalMachine) => string;
  /** True if a setting of the client turns all its hooks off. */
  readonly isDisabled?: (text: string) => boolean;
}

interface JsonClient extends Pick<Connector, 'id' | 'name' | 'afterwards' | 'bringsNode' | 'link'> {
  detect(machine: LocalMachine): Promise<DetectedClient>;
  /** Names of the nested keys that lead to the object with the MCP servers, such as `mcpServers`. */
  readonly servers: readonly string[];
  /** Converts an entry to this client's format. The default writes `command`, `args` and, if not empty, `env`. */
  readonly formatEntry?: (entry: ClientEntry) => object;
  readonly hooks?: JsonHooks;
}

/** Creates the connector of a client that reads its MCP servers from a JSON file. */
export function jsonClient({ servers, formatEntry = commonFormat, hooks, ...client }: JsonClient): Connector {
  const path = [...servers, ENTRY];
  const inspect = cachedByFile((text) => inspectText(text, path));
  const configPath = async (machine: LocalMachine): Promise<string> => (await client.detect(machine)).config;
  return {
    ...client,
    transport: 'stdio',
    ...(hooks && { hooks: jsonHooks(hooks, configPath, client.name) }),
    async look(machine) {
      return inspect(await configPath(machine));
    },
    async connect(machine, { entry, hooks: { commands } }) {
      const config = await configPath(machine);
      const addEntry = (before = ''): string => withEntry({ setValue, valueAt }, before, path, formatEntry(entry));
      if (!hooks) return [{ does: 'edit', path: config, edit: addEntry }];
      const addHooks = (before = ''): string => withHooks(before, hooks, commands);
      if (!hooks.file) return [{ does: 'edit', path: config, edit: (before) => addHooks(addEntry(before)) }];
      const file = hooks.file(machine);
      // Without hooks to add or to remove, do not read the file: it may be broken, or missing.
      const isNeeded = Object.keys(commands).length > 0 || mentionsHooks(file);
      return [
        { does: 'edit', path: config, edit: addEntry },
        ...(isNeeded ? [{ does: 'edit', path: file, edit: addHooks } satisfies EditStep] : []),
      ];
    },
    async disconnect(machine, originals) {
      const config = await configPath(machine);
      const editing = (file: string, edit: (before: string, original: string | undefined) => string): EditStep => ({
        does: 'edit',
        path: file,
        edit: (before) => (before === undefined ? undefined : edit(before, originals.get(file))),
      });
      const restoreEntry = (before: string, original?: string): string => restoreValue(before, path, original);
      if (!hooks) return [editing(config, restoreEntry)];
      const removeHooks = (before: string, original?: string): string => withoutHooks(before, hooks, original);
      if (!hooks.file) return [editing(config, (before, original) => removeHooks(restoreEntry(before, original), original))];
      const file = hooks.file(machine);
      const isNeeded = originals.has(file) || mentionsHooks(file);
      return [editing(config, restoreEntry), ...(isNeeded ? [editing(file, removeHooks)] : [])];
    },
  };
}

function jsonHooks(
  { file, isDisabled, windowsShell, ...format }: JsonHooks,
  configPath: (machine: LocalMachine) => Promise<string>,
  name: string,
): HookSupport {
  const inspect = cachedByFile((text = '') => ({
    commands: commandsOf(hooksIn(text, format)),
    ...(isDisabled?.(text) && { why: `All hooks are turned off in the settings of ${name}. Turn them on there.` }),
  }));
  return {
    ...(windowsShell && { windowsShell }),
    events: HOOK_EVENTS.filter((event) => format.names[event] !== undefined),
    async look(machine) {
      const path = file ? file(machine) : await configPath(machine);
      try {
        return inspect(path);
      } catch (error) {
        throw addPath(path, error);
      }
    },
  };
}

/** True if a file contains a hook of ours. */
export function mentionsHooks(path: string): boolean {
  const text = readConfigFile(path)?.text;
  return text !== undefined && text.includes(HOOK_FILE);
}

const commonFormat = ({ command, args, env }: ClientEntry): object => ({
  command,
  args,
  ...(Object.keys(env).length > 0 && { env }),
});

/** Sets our entry at a path of the JSON text. Keeps settings that the user added to our entry, such as a timeout. */
export function withEntry(
  { setValue: set, valueAt: get }: Pick<typeof json5, 'setValue' | 'valueAt'>,
  before: string,
  path: readonly string[],
  formatted: object,
): string {
  if (!isOurs(get(before, path))) return set(before, path, formatted);
  const { env = {}, ...own } = formatted as Record<string, object>;
  const withOwn = Object.entries(own).reduce((text, [name, value]) => set(text, [...path, name], value), before);
  return Object.entries(env).reduce((text, [name, value]) => set(text, [...path, 'env', name], value), withOwn);
}

function inspectText(text: string | undefined, path: readonly string[]): EntryState {
  const value = text === undefined ? undefined : valueAt(text, path);
  return value === undefined ? { at: 'absent' } : { at: 'present', ...entryOf(value) };
}

/** True if the value is an entry that starts our bridge. */
export function isOurs(value: unknown): boolean {
  const { entry } = entryOf(value);
  return entry !== undefined && startsBridge(entry);
}

/** Parses a client's entry. `entry` is absent if the value does not contain a valid command. */
export function entryOf(value: unknown): { entry?: ClientEntry } {
  const { command, args = [], env = {} } = Object(value) as { command?: unknown; args?: unknown; env?: unknown };
  const texts = (all: unknown[]): all is string[] => all.every((one) => typeof one === 'string');
  if (typeof command !== 'string' || !Array.isArray(args) || !texts(args)) return {};
  if (typeof env !== 'object' || env === null || !texts(Object.values(env))) return {};
  return { entry: { command, args, env: env as Record<string, string> } };
}
