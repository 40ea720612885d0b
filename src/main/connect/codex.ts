import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { readConfigFile } from './config-file.ts';
import { type Connector, ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { entryOf, isOurs } from './json-client.ts';
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
  async connect(machine, { entry }) {
    const { config } = await byConfigFile.detect(machine);
    const { command, args, env } = entry;
    const table = { command, args: [...args], env: { ...env } };
    const edit = (before = ''): string =>
      // If the entry is ours, set only our keys. This keeps settings that the user added, such as which tools need no approval.
      isOurs(tableAt(before, PATH)) ? setKeys(before, PATH, table) : setTable(before, PATH, table);
    return [{ does: 'edit', path: config, edit }];
  },
  async disconnect(machine, held) {
    const { config } = await byConfigFile.detect(machine);
    const edit = (before?: string): string | undefined =>
      before === undefined ? undefined : restoreValue(before, PATH, held.get(config));
    return [{ does: 'edit', path: config, edit }];
  },
};

export const codex = byCommand(byConfigFile, {
  args: (entry) => ['mcp', 'add', ENTRY, ...variables('--env', entry), '--', entry.command, ...entry.args],
});
