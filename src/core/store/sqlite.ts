import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type Package from 'better-sqlite3';

/** Path of the musl dynamic loader. The file exists only on systems that use musl. */
const MUSL: Partial<Record<NodeJS.Architecture, string>> = {
  x64: '/lib/ld-musl-x86_64.so.1',
  arm64: '/lib/ld-musl-aarch64.so.1',
};

/**
 * Returns the name of the module to load. On Linux, `better-sqlite3` detects musl with a diagnostic report of the process, which
 * adds 2 ms to every startup. If the musl loader is missing, the glibc binary is loaded directly instead.
 */
function entry(): string {
  const musl = MUSL[process.arch];
  return process.platform !== 'linux' || musl === undefined || existsSync(musl)
    ? 'better-sqlite3'
    : `better-sqlite3/linux-${process.arch}`;
}

const load = createRequire(import.meta.url);

export const Sqlite = load(entry()) as typeof Package;
