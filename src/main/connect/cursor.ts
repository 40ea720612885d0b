import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { HOOK_SECONDS } from './hook-text.ts';
import { jsonClient } from './json-client.ts';

export const cursor = jsonClient({
  id: 'cursor',
  name: 'Cursor',
  servers: ['mcpServers'],
  hooks: {
    file: (machine) => join(machine.home(), '.cursor', 'hooks.json'),
    // A hook that runs before a prompt can stop the prompt, but adds no text.
    names: { session: 'sessionStart' },
    group: (_event, command) => ({ command, timeout: HOOK_SECONDS }),
    isFlat: true,
    version: 1,
    windowsShell: 'powershell',
  },
  async detect(machine) {
    const config = join(machine.home(), '.cursor', 'mcp.json');
    const found = detectProgram(machine, { program: 'cursor', config });
    // If Cursor's settings folder exists, Cursor is installed: it creates the folder at its first start, but never the file.
    return { ...found, installed: found.installed || existsSync(dirname(config)) };
  },
  link(entry) {
    const config = Buffer.from(JSON.stringify(entry)).toString('base64');
    return `cursor://anysphere.cursor-deeplink/mcp/install?name=${ENTRY}&config=${encodeURIComponent(config)}`;
  },
});
