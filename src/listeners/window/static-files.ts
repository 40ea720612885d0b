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
  '.mcpb': 'application/octet-stream',
};

/**
 * Reads the files of the built window into memory, by URL path. Requests can get only these files, so a manipulated path cannot
 * reach a file outside the folder.
 */
export function readStaticFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const files = new Map<string, StaticFile>();
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(file.name)];
    if (!file.isFile() || type === undefined) continue;
    const path = join(file.parentPath, file.name);
    const address = `/${path.slice(folder.length + 1).replaceAll('\\', '/')}`;
    files.set(address === '/index.html' ? '/' : address, { type, bytes: readFileSync(path) });
  }
  return files;
}
