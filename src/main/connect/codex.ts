import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { FORMAT, hooksFileOf, lookAtHooks, requireHooksFile, REVIEW, withoutTrust, withTrust } from './codex-hooks.ts';
import { readConfigFile } from './config-file.ts';
import { type Connector, type EditStep, ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { withHooks, withoutHooks } from './hook-text.ts';
import { entryOf, isOurs, mentionsHooks } from './json-client.ts';
import { folderFromEnvironment } from './places.ts';
import { restoreValue, setKeys, setTable, tableAt } from './toml-text.ts';

const PATH = ['mcp_servers', ENTRY];

const byConfigFile: Connector = {
  id: 'codex',
  name: 'Codex',
  transport: 'stdio',
  afterwards: 'Restart open sessions of Codex, so that they load the connection.',
  async detect(machine) {
    const folder = folderFromEnvironment(machine, 'CODEX_HOME') ?? join(machine.home(), '.codex');
    return detectProgram(machine, { program: 'codex', config: join(folder, 'config.toml') });
  },
  async look(machine) {
    const { config } = await byConfigFile.detect(machine);
    const table = tableAt(readConfigFile(config)?.text ?? '', PATH);
    if (table === undefined) return { at: 'absent' };
    const disabled = Object(table).enabled === false;
    return { at: 'present', ...entryOf(table), ...(disabled && { disabled }) };
  },
  hooks: {
    review: REVIEW,
    look: async (machine) => lookAtHooks((await byConfigFile.detect(machine)).config),
  },
  async connect(machine, { entry, hooks: { commands, trust } }) {
    const { config } = await byConfigFile.detect(machine);
    const { command, args, env } = entry;
    const table = { command, args: [...args], env: { ...env } };
    const addEntry = (before: string): string =>
      // If the entry is ours, set only our keys. This keeps settings that the user added, such as which tools need no approval.
      isOurs(tableAt(before, PATH)) ? setKeys(before, PATH, table) : setTable(before, PATH, table);
    const hasHooks = Object.keys(commands).length > 0;
    if (hasHooks) requireHooksFile(config);
    const edit = (before = ''): string => {
      const added = addEntry(before);
      return trust ? withTrust(added, config, commands) : added;
    };
    const file = hooksFileOf(config);
    const addHooks = (before = ''): string => withHooks(before, FORMAT, commands);
    return [
      { does: 'edit', path: config, edit },
      ...(hasHooks || mentionsHooks(file) ? [{ does: 'edit', path: file, edit: addHooks } satisfies EditStep] : []),
    ];
  },
  async disconnect(machine, held) {
    const { config } = await byConfigFile.detect(machine);
    const original = held.get(config);
    const edit = (before?: string): string | undefined =>
      before === undefined ? undefined : withoutTrust(restoreValue(before, PATH, original), config, original);
    const file = hooksFileOf(config);
    const removeHooks = (before?: string): string | undefined =>
      before === undefined ? undefined : withoutHooks(before, FORMAT, held.get(file));
    // Change config.toml first: the records of trust are found by the positions of our hooks in the other file.
    return [
      { does: 'edit', path: config, edit },
      ...(held.has(file) || mentionsHooks(file) ? [{ does: 'edit', path: file, edit: removeHooks } satisfies EditStep] : []),
    ];
  },
};

export const codex = byCommand(byConfigFile, {
  args: (entry) => ['mcp', 'add', ENTRY, ...variables('--env', entry), '--', entry.command, ...entry.args],
});
