import { join } from 'node:path';
import { byCommand, variables } from './by-command.ts';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { jsonClient } from './json-client.ts';

export const geminiCli = byCommand(
  jsonClient({
    id: 'gemini-cli',
    name: 'Gemini CLI',
    afterwards: 'In a folder that Gemini CLI does not trust yet, Gemini CLI shows the entry for Helmdeck Memory as disabled.',
    servers: ['mcpServers'],
    async detect(machine) {
      return detectProgram(machine, { program: 'gemini', config: join(machine.home(), '.gemini', 'settings.json') });
    },
  }),
  {
    args: (entry) => ['mcp', 'add', '--scope', 'user', ...variables('-e', entry), ENTRY, entry.command, '--', ...entry.args],
  },
);
