import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

export interface StaticFile {
  readonly type: string;
  readonly bytes: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  // The bundle for Claude Desktop, to be saved.
  '.mcpb': 'application/octet-stream',
};

/** The built window's files by their addresses, read once. What is not in this list does not exist, whatever a path spells. */
export function readStaticFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const pages = new Map<string, StaticFile>();
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(file.name)];
    if (!file.isFile() || type === undefined) continue;
    const path = join(file.parentPath, file.name);
    const address = `/${path.slice(folder.length + 1).replaceAll('\\', '/')}`;
    pages.set(address === '/index.html' ? '/' : address, { type, bytes: readFileSync(path) });
  }
  return pages;
}
