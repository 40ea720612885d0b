import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { HOOK_SECONDS } from './hook-text.ts';
import { jsonClient } from './json-client.ts';
import { valueAt } from './json-text.ts';
import { folderFromEnvironment } from './places.ts';

export const claudeCode = byCommand(
  jsonClient({
    id: 'claude-code',
    name: 'Claude Code',
    afterwards: 'Restart open sessions of Claude Code, so that they load the connection.',
    servers: ['mcpServers'],
    hooks: {
      file: (machine) =>
        join(folderFromEnvironment(machine, 'CLAUDE_CONFIG_DIR') ?? join(machine.home(), '.claude'), 'settings.json'),
      names: { session: 'SessionStart', prompt: 'UserPromptSubmit' },
      // A resumed session still contains the text of its earlier hooks.
      group: (event, command) => ({
        ...(event === 'session' && { matcher: 'startup|clear|compact' }),
        hooks: [{ type: 'command', command, timeout: HOOK_SECONDS }],
      }),
      isDisabled: (text) => valueAt(text, ['disableAllHooks']) === true,
    },
    formatEntry: ({ command, args, env }) => ({ type: 'stdio', command, args, env }),
    async detect(machine) {
      const home = machine.home();
      const config = join(folderFromEnvironment(machine, 'CLAUDE_CONFIG_DIR') ?? home, '.claude.json');
      return detectProgram(machine, { program: 'claude', places: [join(home, '.claude', 'local')], config });
    },
  }),
  {
    args: (entry) => ['mcp', 'add', '--scope', 'user', ENTRY, ...variables('-e', entry), '--', entry.command, ...entry.args],
    // Disables telemetry and the update check.
    environment: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  },
);
