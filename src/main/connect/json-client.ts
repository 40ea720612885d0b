import { cachedByFile } from './config-file.ts';
import type { Connector, Detected, Entry, Look, LocalMachine } from './connector.ts';
import { ENTRY } from './connector.ts';
import { restoreValue, type json5, setValue, valueAt } from './json-text.ts';
import { startsBridge } from './launch.ts';

interface JsonClient extends Pick<Connector, 'id' | 'name' | 'afterwards' | 'bringsNode' | 'link'> {
  detect(machine: LocalMachine): Promise<Detected>;
  /** The object that holds its servers, such as `mcpServers`. */
  readonly servers: readonly string[];
  /** As this client writes an entry; command, args and, where there is something in it, env, unless told. */
  readonly spelled?: (entry: Entry) => object;
}

/** A client that reads its servers from a JSON file, and is connected by our entry in it. */
export function jsonClient({ servers, spelled = usual, ...client }: JsonClient): Connector {
  const path = [...servers, ENTRY];
  const lookInto = cachedByFile((text) => lookAt(text, path));
  const where = async (machine: LocalMachine): Promise<string> => (await client.detect(machine)).config;
  return {
    ...client,
    transport: 'stdio',
    async look(machine) {
      return lookInto(await where(machine));
    },
    async connect(machine, { entry }) {
      const edit = (before = ''): string => withEntry({ setValue, valueAt }, before, path, spelled(entry));
      return [{ does: 'edit', path: await where(machine), edit }];
    },
    async disconnect(machine, held) {
      const config = await where(machine);
      const edit = (before?: string): string | undefined =>
        before === undefined ? undefined : restoreValue(before, path, held.get(config));
      return [{ does: 'edit', path: config, edit }];
    },
  };
}

const usual = ({ command, args, env }: Entry): object => ({
  command,
  args,
  ...(Object.keys(env).length > 0 && { env }),
});

/** The text with our entry at a path. What its owner has added to ours, such as how long to wait for it, is theirs. */
export function withEntry(
  { setValue: set, valueAt: said }: Pick<typeof json5, 'setValue' | 'valueAt'>,
  before: string,
  path: readonly string[],
  spelled: object,
): string {
  if (!isOurs(said(before, path))) return set(before, path, spelled);
  const { env = {}, ...own } = spelled as Record<string, object>;
  const text = Object.entries(own).reduce((done, [name, value]) => set(done, [...path, name], value), before);
  return Object.entries(env).reduce((done, [name, value]) => set(done, [...path, 'env', name], value), text);
}

/** What a JSON configuration says of us. */
function lookAt(text: string | undefined, path: readonly string[]): Look {
  const value = text === undefined ? undefined : valueAt(text, path);
  return value === undefined ? { at: 'absent' } : { at: 'present', ...entryOf(value) };
}

/** Whether what stands there is an entry that this program makes. */
export function isOurs(value: unknown): boolean {
  const { entry } = entryOf(value);
  return entry !== undefined && startsBridge(entry);
}

/** Only what a client would start. */
export function entryOf(value: unknown): { entry?: Entry } {
  const { command, args = [], env = {} } = Object(value) as { command?: unknown; args?: unknown; env?: unknown };
  const texts = (all: unknown[]): all is string[] => all.every((one) => typeof one === 'string');
  if (typeof command !== 'string' || !Array.isArray(args) || !texts(args)) return {};
  if (typeof env !== 'object' || env === null || !texts(Object.values(env))) return {};
  return { entry: { command, args, env: env as Record<string, string> } };
}
