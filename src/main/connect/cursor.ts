import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENTRY } from './connector.ts';
import { detectProgram } from './detect.ts';
import { jsonClient } from './json-client.ts';

export const cursor = jsonClient({
  id: 'cursor',
  name: 'Cursor',
  servers: ['mcpServers'],
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
