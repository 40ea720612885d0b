import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { jsonClient } from './json-client.ts';
import { folderFromEnvironment } from './places.ts';

export const claudeCode = byCommand(
  jsonClient({
    id: 'claude-code',
    name: 'Claude Code',
    afterwards: 'Sessions that are open notice it when they are started again.',
    servers: ['mcpServers'],
    spelled: ({ command, args, env }) => ({ type: 'stdio', command, args, env }),
    async detect(machine) {
      const home = machine.home();
      const config = join(folderFromEnvironment(machine, 'CLAUDE_CONFIG_DIR') ?? home, '.claude.json');
      return detectProgram(machine, { program: 'claude', places: [join(home, '.claude', 'local')], config });
    },
  }),
  {
    args: (entry) => ['mcp', 'add', '--scope', 'user', ENTRY, ...variables('-e', entry), '--', entry.command, ...entry.args],
    // Else it would report its use, and look for a newer one of itself.
    environment: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  },
);
