import { cachedByFile } from './config-file.ts';
import { type ClientEntry, type Connector, type DetectedClient, ENTRY, type LocalMachine, type EntryState } from './connector.ts';
import { restoreValue, type json5, setValue, valueAt } from './json-text.ts';
import { startsBridge } from './launch.ts';

interface JsonClient extends Pick<Connector, 'id' | 'name' | 'afterwards' | 'bringsNode' | 'link'> {
  detect(machine: LocalMachine): Promise<DetectedClient>;
  /** Names of the nested keys that lead to the object with the MCP servers, such as `mcpServers`. */
  readonly servers: readonly string[];
  /** Converts an entry to this client's format. The default writes `command`, `args` and, if not empty, `env`. */
  readonly formatEntry?: (entry: ClientEntry) => object;
}

/** Creates the connector of a client that reads its MCP servers from a JSON file. */
export function jsonClient({ servers, formatEntry = commonFormat, ...client }: JsonClient): Connector {
  const path = [...servers, ENTRY];
  const inspect = cachedByFile((text) => inspectText(text, path));
  const configPath = async (machine: LocalMachine): Promise<string> => (await client.detect(machine)).config;
  return {
    ...client,
    transport: 'stdio',
    async look(machine) {
      return inspect(await configPath(machine));
    },
    async connect(machine, { entry }) {
      const edit = (before = ''): string => withEntry({ setValue, valueAt }, before, path, formatEntry(entry));
      return [{ does: 'edit', path: await configPath(machine), edit }];
    },
    async disconnect(machine, originals) {
      const config = await configPath(machine);
      const edit = (before?: string): string | undefined =>
        before === undefined ? undefined : restoreValue(before, path, originals.get(config));
      return [{ does: 'edit', path: config, edit }];
    },
  };
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
