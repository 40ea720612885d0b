import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { byCommand } from './by-command.ts';
import { ENTRY, type ClientEntry } from './connector.ts';
import { detectProgram } from './detect.ts';
import { HOOK_SECONDS } from './hook-text.ts';
import { jsonClient } from './json-client.ts';
import { applicationData } from './places.ts';

/** Folders that contain VS Code's command on macOS. VS Code adds its command to the PATH only if the user requests that. */
const MACOS = ['/Applications/Visual Studio Code.app/Contents/Resources/app/bin'];

const formatEntry = ({ command, args, env }: ClientEntry): object => ({ type: 'stdio', command, args, env });
const namedEntry = (entry: ClientEntry): string => JSON.stringify({ name: ENTRY, ...formatEntry(entry) });

export const vscode = byCommand(
  jsonClient({
    id: 'vscode',
    name: 'Visual Studio Code',
    servers: ['servers'],
    hooks: {
      // Visual Studio Code reads every file in this folder.
      file: (machine) => join(machine.home(), '.copilot', 'hooks', 'helmdeck-memory.json'),
      // A hook that runs before a prompt can stop the prompt, but adds no text.
      names: { session: 'SessionStart' },
      group: (_event, command) => ({ type: 'command', command, timeout: HOOK_SECONDS }),
      isFlat: true,
    },
    formatEntry,
    async detect(machine) {
      const config = join(applicationData(machine), 'Code', 'User', 'mcp.json');
      const found = detectProgram(machine, { program: 'code', places: MACOS, config });
      return { ...found, installed: found.installed || existsSync(dirname(config)) };
    },
    link: (entry) => `vscode:mcp/install?${encodeURIComponent(namedEntry(entry))}`,
  }),
  { args: (entry) => ['--add-mcp', namedEntry(entry)] },
);
