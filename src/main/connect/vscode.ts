import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { byCommand } from './by-command.ts';
import { ENTRY, type Entry } from './connector.ts';
import { detectProgram } from './detect.ts';
import { jsonClient } from './json-client.ts';
import { applicationData } from './places.ts';

/** The command is put into the PATH only when its owner asks for it. */
const MACOS = ['/Applications/Visual Studio Code.app/Contents/Resources/app/bin'];

const spelled = ({ command, args, env }: Entry): object => ({ type: 'stdio', command, args, env });
const named = (entry: Entry): string => JSON.stringify({ name: ENTRY, ...spelled(entry) });

export const vscode = byCommand(
  jsonClient({
    id: 'vscode',
    name: 'Visual Studio Code',
    servers: ['servers'],
    spelled,
    async detect(machine) {
      const config = join(applicationData(machine), 'Code', 'User', 'mcp.json');
      const found = detectProgram(machine, { program: 'code', places: MACOS, config });
      return { ...found, installed: found.installed || existsSync(dirname(config)) };
    },
    link: (entry) => `vscode:mcp/install?${encodeURIComponent(named(entry))}`,
  }),
  { args: (entry) => ['--add-mcp', named(entry)] },
);
