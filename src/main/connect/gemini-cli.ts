import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { HOOK_SECONDS } from './hook-text.ts';
import { jsonClient } from './json-client.ts';
import { valueAt } from './json-text.ts';

export const geminiCli = byCommand(
  jsonClient({
    id: 'gemini-cli',
    name: 'Gemini CLI',
    afterwards: 'In a folder that Gemini CLI does not trust yet, Gemini CLI shows the entry for Helmdeck Memory as disabled.',
    servers: ['mcpServers'],
    hooks: {
      names: { session: 'SessionStart', prompt: 'BeforeAgent' },
      group: (event, command) => ({
        hooks: [{ name: `helmdeck-${event}`, type: 'command', command, timeout: HOOK_SECONDS * 1000 }],
      }),
      isDisabled: (text) => valueAt(text, ['hooksConfig', 'enabled']) === false,
      windowsShell: 'powershell',
    },
    async detect(machine) {
      return detectProgram(machine, { program: 'gemini', config: join(machine.home(), '.gemini', 'settings.json') });
    },
  }),
  {
    args: (entry) => ['mcp', 'add', '--scope', 'user', ...variables('-e', entry), ENTRY, entry.command, '--', ...entry.args],
  },
);
